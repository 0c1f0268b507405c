/** One noun: what it is, what can be done with it, and what belongs to it. */
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, EllipsisVertical, Pencil } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { MenuButton } from '../kit/Menu';
import { RelativeTime } from '../kit/RelativeTime';
import { Skeleton } from '../kit/States';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { MissingPage } from '../pages/Missing';
import { meQuery } from '../queries';
import { LoadError } from '../LoadError';
import { valueAt } from './form';
import { readNoun, nounKeys } from './client';
import { mayChange, type AnyNoun, type AnyRow, type NounPanel, type Section } from './noun';
import { useVerbs } from './useVerbs';
import { Value } from './Value';
import { useNounWords } from './words';

export function useNoun(noun: AnyNoun, id: string) {
  const host = useHost();
  return useQuery({
    queryKey: nounKeys.one(noun.name, id),
    queryFn: ({ signal }) => readNoun(host, noun.name, id, signal),
    enabled: host.visible && id !== ''
  });
}

export function NounDetail({ noun, id }: { noun: AnyNoun; id: string }): JSX.Element {
  const { t } = useTranslation();
  const { data, error, refetch } = useNoun(noun, id);
  if (error && 'status' in error && error.status === 404) {
    return <MissingPage />;
  }
  return (
    <>
      <Back noun={noun} />
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {data ? <Shown noun={noun} row={data} /> : null}
      {!data && !error ? <Skeleton rows={4} label={t('state.loading')} /> : null}
    </>
  );
}

export function Back({ noun, to }: { noun: AnyNoun; to?: string }): JSX.Element {
  const words = useNounWords(noun);
  return (
    <p className="bai-back">
      <ArrowLeft size={16} aria-hidden />
      <PageLink to={to ?? noun.path}>{words.say('title')}</PageLink>
    </p>
  );
}

export const titleOf = (noun: AnyNoun, row: AnyRow): string =>
  noun.title ? noun.title(row as never) : row.name;

function Shown({ noun, row }: { noun: AnyNoun; row: AnyRow }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const words = useNounWords(noun);
  const verbs = useVerbs(noun, () => host.open(noun.path));
  const writes = mayChange(noun, row, me);
  const offered = me && writes ? verbs.of(row, me) : [];
  const Badges = noun.Badges as React.ComponentType<{ row: AnyRow }> | undefined;
  const panels = (noun.panels ?? []) as unknown as NounPanel<AnyRow>[];
  return (
    <>
      <PageHeading title={titleOf(noun, row)} beside={Badges ? <Badges row={row} /> : null}>
        {writes ? (
          <Button
            kind="primary"
            icon={<Pencil size={16} aria-hidden />}
            onClick={() => host.open(`${noun.path}/${encodeURIComponent(row.id)}/edit`)}
          >
            {t('form.edit')}
          </Button>
        ) : null}
        {offered.length ? (
          <MenuButton
            label={t('form.more', { name: row.name })}
            icon={<EllipsisVertical size={18} aria-hidden />}
            entries={offered.map(verb => ({
              key: verb.key,
              text: t(`deeds.${verb.key}.text`),
              icon: <verb.Icon size={16} aria-hidden />,
              ...(verb.danger ? { danger: true } : {}),
              onSelect: () => void verbs.run(verb, [row])
            }))}
          />
        ) : null}
      </PageHeading>
      <div className="bai-sections">
        {noun.sections.map(section => (
          <Facts key={section.key} noun={noun} section={section} row={row} />
        ))}
      </div>
      {me
        ? panels
            .filter(panel => !panel.admits || panel.admits(me, row))
            .map(({ key, Panel }) => (
              <section key={key} className="bai-card bai-panel-card">
                <h2>{words.say(`panels.${key}`)}</h2>
                <Panel row={row} />
              </section>
            ))
        : null}
      <Origin row={row} />
      {verbs.dialogs}
    </>
  );
}

function Facts(props: { noun: AnyNoun; section: Section; row: AnyRow }): JSX.Element | null {
  const { t } = useTranslation();
  const { noun, section, row } = props;
  const words = useNounWords(noun);
  const shown = section.fields.filter(
    field =>
      !field.secret &&
      !field.virtual &&
      field.name !== 'name' &&
      (!field.when || field.when(row))
  );
  const domain = noun.name === 'domains' ? undefined : (row.domain as string | undefined);
  if (!shown.length) {
    return null;
  }
  return (
    <section className="bai-card">
      <h2>{t(`sections.${section.key}`)}</h2>
      <dl className="bai-facts">
        {shown.map(({ name, kind }) => (
          <div key={name}>
            <dt>{words.label(name)}</dt>
            <dd>
              <Value kind={kind} field={name} value={valueAt(row, name)} domain={domain} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Origin({ row }: { row: AnyRow }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { created_at: created, modified_at: changed } = row as Record<string, unknown>;
  return (
    <p className="bai-origin">
      <code>{row.id}</code>
      {typeof created === 'string' && created ? (
        <span>
          {t('form.created')} <RelativeTime iso={created} language={language} />
        </span>
      ) : null}
      {typeof changed === 'string' && changed ? (
        <span>
          {t('form.changed')} <RelativeTime iso={changed} language={language} />
        </span>
      ) : null}
    </p>
  );
}

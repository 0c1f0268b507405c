/** Making and changing one noun: its fields by section, and what happens to them. */
import { ApiError, type Me } from '@backendai/api';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useMemo, useRef, useState, type FormEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Skeleton } from '../kit/States';
import { useAskBeforeLeaving } from '../useAskBeforeLeaving';
import { PageHeading } from '../PageHeading';
import { MissingPage } from '../pages/Missing';
import { meQuery } from '../queries';
import { LoadError } from '../LoadError';
import { useWording } from '../wording';
import { changeNoun, createNoun, nounKeys, readNoun } from './client';
import { ConflictNotice } from './ConflictNotice';
import { FieldControl } from './FieldControl';
import {
  blank,
  changedFields,
  findConflicts,
  findWrong,
  isShown,
  openFields,
  rebase,
  toBody,
  toDrafts,
  type Conflict,
  type Drafts,
  type Wrong
} from './form';
import type { Draft } from './kinds';
import { Back, titleOf, useNoun } from './NounDetail';
import type { AnyNoun, AnyRow, NounField } from './noun';
import { Refusal } from './Refusal';
import { useRefresh } from './useVerbs';
import { useNounWords, type NounWords } from './words';

interface Props {
  noun: AnyNoun;
  /** Which one is changed; null makes a new one. */
  id: string | null;
}

export function NounForm({ noun, id }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { data, error, refetch } = useNoun(noun, id ?? '');
  if (id !== null && error && 'status' in error && error.status === 404) {
    return <MissingPage />;
  }
  if (id !== null && error && !data) {
    return <LoadError error={error} stale={false} onRetry={() => void refetch()} />;
  }
  if (!me || (id !== null && !data)) {
    return <Skeleton rows={5} label={t('state.loading')} />;
  }
  return <Form key={id} noun={noun} me={me} item={id === null ? null : (data ?? null)} />;
}

function Form({ noun, me, item }: { noun: AnyNoun; me: Me; item: AnyRow | null }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const words = useNounWords(noun);
  const client = useQueryClient();
  const refresh = useRefresh(noun.name);
  const top = useRef<HTMLDivElement>(null);
  const fields = useMemo(() => openFields(noun, me, item !== null), [noun, me, item]);
  // Others may change it while this form is open: it goes on from what it began with.
  const [base, setBase] = useState<AnyRow | null>(item);
  // A link may say what a new one begins with: `…/new?user=grace`.
  const [address] = useAddress();
  const defaults = useMemo(() => blank(fields), [fields]);
  const [before, setBefore] = useState<Drafts>(() => toDrafts(fields, base ?? defaults));
  const [drafts, setDrafts] = useState<Drafts>(() => ({
    ...before,
    ...(base ? {} : given(fields, address))
  }));
  const [wrong, setWrong] = useState<Wrong>({});
  const [refused, setRefused] = useState<Record<string, string>>({});
  const [conflicts, setConflicts] = useState<{ now: AnyRow; list: Conflict[] } | null>(null);
  const [made, setMade] = useState<AnyRow | null>(null);
  const changed = changedFields(fields, before, drafts);
  const same = base !== null && changed.length === 0;
  const status = useId();
  const say = useWording();
  const leaving = useAskBeforeLeaving(made === null && changed.length > 0);

  const finish = noun.finish ?? (body => body);
  const here = (row: AnyRow): string => `${noun.path}/${encodeURIComponent(row.id)}`;
  const send = useMutation({
    mutationFn: (revision: number | undefined): Promise<AnyRow> => {
      if (base) {
        const body = finish(toBody(changed, drafts, base));
        return changeNoun(host, noun.name, base.id, body, revision);
      }
      const open = fields.filter(field => isShown(field, drafts));
      const said = open.filter(field => field.required || changed.includes(field));
      const body = finish(toBody(said, drafts, defaults));
      return noun.create
        ? (noun.create(host, body) as unknown as Promise<AnyRow>)
        : createNoun(host, noun.name, body);
    },
    onSuccess: row => {
      leaving.allow();
      client.setQueryData(nounKeys.one(noun.name, row.id), row);
      void refresh();
      if (!base && noun.Made) {
        setMade(row);
        return;
      }
      host.notify(
        'success',
        t(base ? 'form.saved' : 'form.made', { name: titleOf(noun, row) })
      );
      host.open(here(row));
    },
    onError: async error => {
      if (error instanceof ApiError && error.status === 412 && base) {
        const now = await readNoun(host, noun.name, base.id);
        setConflicts({ now, list: findConflicts(fields, before, drafts, now) });
      } else if (error instanceof ApiError) {
        setRefused(byField(fields, error, say));
      }
      top.current?.scrollIntoView({ block: 'start' });
      top.current?.focus();
    }
  });

  const change = (field: NounField, draft: Draft): void => {
    setDrafts(old => ({ ...old, [field.name]: draft }));
    setWrong(old => without(old, field.name));
    setRefused(old => without(old, field.name));
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (same || send.isPending) {
      return;
    }
    const found = findWrong(fields, drafts);
    setWrong(found);
    setRefused({});
    if (Object.keys(found).length) {
      top.current?.scrollIntoView({ block: 'start' });
      top.current?.focus();
      return;
    }
    send.mutate(base?.revision);
  };
  const settle = (now: AnyRow, keepMine: boolean): void => {
    setDrafts(keepMine ? rebase(fields, before, drafts, now) : toDrafts(fields, now));
    setBefore(toDrafts(fields, now));
    setBase(now);
    setConflicts(null);
    send.reset();
  };
  const close = (): void => host.open(base ? here(base) : noun.path);
  const Made = noun.Made as React.ComponentType<{ row: AnyRow; onClose(): void }> | undefined;

  return (
    <>
      <Back noun={noun} {...(base ? { to: here(base) } : {})} />
      <PageHeading
        title={base ? t('form.editTitle', { name: titleOf(noun, base) }) : words.say('new')}
      />
      <form onSubmit={submit} noValidate className="bai-form">
        <div ref={top} tabIndex={-1} className="bai-form-top">
          {conflicts ? (
            <ConflictNotice
              conflicts={conflicts.list}
              words={words}
              onMine={() => settle(conflicts.now, true)}
              onTheirs={() => settle(conflicts.now, false)}
            />
          ) : null}
          <Problems words={words} wrong={wrong} refused={refused} fields={fields} />
          {send.error && !conflicts ? <Refusal error={send.error} /> : null}
        </div>
        {noun.sections.map(section => {
          const open = section.fields.filter(
            field => fields.includes(field) && isShown(field, drafts)
          );
          return open.length ? (
            <section key={section.key} className="bai-card">
              <h2>{t(`sections.${section.key}`)}</h2>
              <div className="bai-form-grid">
                {open.map(field => (
                  <div
                    key={field.name}
                    id={anchor(field)}
                    data-wide={isWide(field) || undefined}
                  >
                    <FieldControl
                      field={field}
                      drafts={drafts}
                      words={words}
                      error={errorOf(field, wrong, refused, words)}
                      onChange={draft => change(field, draft)}
                    />
                  </div>
                ))}
              </div>
            </section>
          ) : null;
        })}
        <div className="bai-form-bar">
          <span id={status} className="bai-help" role="status">
            {changed.length
              ? t('form.changes', { count: changed.length })
              : t('form.noChanges')}
          </span>
          <Button onClick={close}>{t('form.cancel')}</Button>
          <Button
            kind="primary"
            submits
            busy={send.isPending}
            {...(same ? { 'aria-disabled': true, 'aria-describedby': status } : {})}
          >
            {t(base ? 'form.save' : 'form.create')}
          </Button>
        </div>
      </form>
      {leaving.dialog}
      {made && Made ? <Made row={made} onClose={() => host.open(here(made))} /> : null}
    </>
  );
}

function given(fields: readonly NounField[], address: URLSearchParams): Drafts {
  const named = fields.filter(
    ({ name, kind }) => address.has(name) && ['line', 'reference', 'choice'].includes(kind.type)
  );
  return Object.fromEntries(named.map(({ name }) => [name, address.get(name) ?? '']));
}

const anchor = (field: NounField): string => `field-${field.name.replaceAll('.', '-')}`;

const WIDE = ['slots', 'hosts', 'page', 'weights', 'words', 'choices'];
const isWide = (field: NounField): boolean => WIDE.includes(field.kind.type);

function without<Value>(from: Record<string, Value>, name: string): Record<string, Value> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key !== name));
}

/** What the service says of which field; what is said of a document is its first one's. */
function byField(
  fields: readonly NounField[],
  error: ApiError,
  say: (text: string) => string
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { field: name, message } of error.fields) {
    const field = fields.find(each => each.name === name || each.name.startsWith(`${name}.`));
    if (field) {
      found[field.name] = say(message).replace(`${name}: `, '');
    }
  }
  return found;
}

function errorOf(
  field: NounField,
  wrong: Wrong,
  refused: Record<string, string>,
  words: NounWords
): string | undefined {
  const found = wrong[field.name];
  return found ? words.t(`wrong.${found.key}`, { ...found.values }) : refused[field.name];
}

function Problems(props: {
  words: NounWords;
  wrong: Wrong;
  refused: Record<string, string>;
  fields: readonly NounField[];
}): JSX.Element | null {
  const { words, wrong, refused, fields } = props;
  const named = fields.filter(field => field.name in wrong || field.name in refused);
  if (!named.length) {
    return null;
  }
  return (
    <div className="bai-summary" role="alert">
      <p>{words.t('form.correct')}</p>
      <ul>
        {named.map(field => (
          <li key={field.name}>
            <a
              href={`#${anchor(field)}`}
              onClick={event => {
                event.preventDefault();
                document
                  .getElementById(anchor(field))
                  ?.querySelector<HTMLElement>('input, select, textarea, button')
                  ?.focus();
              }}
            >
              {words.label(field.name)}
            </a>
            : {errorOf(field, wrong, refused, words)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** All nouns of one kind: found, chosen, changed together, and the way to make one. */
import { useQuery } from '@tanstack/react-query';
import { EllipsisVertical, Pencil, Plus } from 'lucide-react';
import { useMemo, type ComponentType, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost, type Host } from '../host';
import { Button } from '../kit/Button';
import { MenuButton } from '../kit/Menu';
import { RelativeTime } from '../kit/RelativeTime';
import { Segmented } from '../kit/Segmented';
import { listKey, NounList, type Filter, type ListColumn, type ListOf } from '../lists';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { fieldsTogether, useBulkEdit } from './BulkEdit';
import { choicesQuery } from './choices';
import { listNouns } from './client';
import { Siblings } from './Siblings';
import { titleOf } from './NounDetail';
import {
  fieldsOf,
  mayChange,
  mayCreate,
  mayWrite,
  type AnyNoun,
  type AnyRow,
  type NounColumn
} from './noun';
import { admits, useVerbs, verbsOf } from './useVerbs';
import { plain, Value } from './Value';
import { useNounWords, valueWord, type NounWords } from './words';

export function NounIndex({ noun }: { noun: AnyNoun }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const words = useNounWords(noun);
  const me = useQuery(meQuery(host)).data;
  const writes = mayWrite(noun, me);
  const list = useList(noun, words, writes);
  const [address, setAddress] = useAddress();
  const More = noun.More;
  return (
    <>
      <PageHeading title={words.say('title')}>
        {writes && More ? <More /> : null}
        {writes && mayCreate(noun, me) ? (
          <Button
            kind="primary"
            icon={<Plus size={16} aria-hidden />}
            onClick={() => host.open(`${noun.path}/new`)}
          >
            {words.say('new')}
          </Button>
        ) : null}
      </PageHeading>
      <Siblings path={noun.path} />
      <p className="bai-lead">{words.say('about')}</p>
      <NounList
        key={list.tab}
        list={list.of}
        beside={
          noun.tabs ? (
            <Segmented
              label={t('form.show')}
              value={list.tab}
              options={noun.tabs.map(({ key }) => ({
                value: key,
                text: words.say(`tabs.${key}`)
              }))}
              onChange={tab => {
                const next = new URLSearchParams(address);
                next.delete('after');
                next.set('tab', tab);
                setAddress(next, { replace: true });
              }}
            />
          ) : undefined
        }
      />
      {list.dialogs}
    </>
  );
}

function useList(
  noun: AnyNoun,
  words: NounWords,
  writes: boolean
): { of: ListOf<AnyRow>; tab: string; dialogs: ReactNode } {
  const { t } = words;
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const [address] = useAddress();
  const verbs = useVerbs(noun);
  const editing = useBulkEdit(noun);
  const filters = useFilters(noun, words);
  const columns = useColumns(noun, words);
  const tabs = noun.tabs ?? [];
  const tab = tabs.find(each => each.key === address.get('tab')) ?? tabs[0];
  const of: ListOf<AnyRow> = {
    name: noun.name,
    caption: words.say('title'),
    columns,
    filters,
    searches: words.say('search'),
    order: noun.order ?? 'name',
    queryKey: view => [...listKey(noun.name), tab?.key ?? '', view],
    followed: true,
    load: async (view, signal) => {
      const { search, after, limit, order } = view;
      const query = {
        limit,
        order,
        ...tab?.filter,
        ...view.filters,
        ...(search ? { search } : {}),
        ...(after ? { after } : {})
      };
      const page = await listNouns(host, noun.name, query, signal);
      return { items: page.items, next: page.next ?? null };
    },
    rowKey: row => row.id,
    rowName: row => titleOf(noun, row),
    actions: row => <RowActions noun={noun} row={row} verbs={verbs} />,
    bulk:
      writes && me
        ? [
            ...(fieldsTogether(noun, me).length
              ? [
                  {
                    key: 'edit',
                    text: t('bulkEdit.open'),
                    icon: <Pencil size={16} aria-hidden />,
                    admits: (row: AnyRow) => mayChange(noun, row, me),
                    why: t('deeds.notForThese'),
                    run: editing.run
                  }
                ]
              : []),
            ...verbsOf(noun, me)
              .filter(verb => verb.change ?? verb.purges)
              .map(verb => ({
                key: verb.key,
                text: t(`deeds.${verb.key}.text`),
                icon: <verb.Icon size={16} aria-hidden />,
                danger: verb.danger ?? false,
                admits: (row: AnyRow) => admits(noun, verb, row, me),
                why: t('deeds.notForThese'),
                run: (rows: AnyRow[]) => verbs.run(verb, rows)
              }))
          ]
        : [],
    empty: {
      icon: <noun.Icon size={32} />,
      title: words.say('emptyTitle'),
      text: words.say('emptyText')
    }
  };
  return {
    of,
    tab: tab?.key ?? '',
    dialogs: (
      <>
        {verbs.dialogs}
        {editing.dialog}
      </>
    )
  };
}

function RowActions(props: {
  noun: AnyNoun;
  row: AnyRow;
  verbs: ReturnType<typeof useVerbs>;
}): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const { noun, row, verbs } = props;
  const me = useQuery(meQuery(host)).data;
  if (!me || !mayChange(noun, row, me)) {
    return null;
  }
  return (
    <MenuButton
      label={t('form.actionsFor', { name: titleOf(noun, row) })}
      icon={<EllipsisVertical size={18} aria-hidden />}
      entries={[
        {
          key: 'edit',
          text: t('form.edit'),
          onSelect: () => host.open(`${noun.path}/${encodeURIComponent(row.id)}/edit`)
        },
        ...verbs.of(row, me).map(verb => ({
          key: verb.key,
          text: t(`deeds.${verb.key}.text`),
          icon: <verb.Icon size={16} aria-hidden />,
          ...(verb.danger ? { danger: true } : {}),
          onSelect: () => void verbs.run(verb, [row])
        }))
      ]}
    />
  );
}

function useColumns(noun: AnyNoun, words: NounWords): ListColumn<AnyRow>[] {
  const { t } = words;
  const { language } = useHost();
  return useMemo(() => {
    const kinds = new Map(fieldsOf(noun).map(field => [field.name as string, field.kind]));
    const Badges = noun.Badges as ComponentType<{ row: AnyRow }> | undefined;
    const name: ListColumn<AnyRow> = {
      key: 'name',
      title: words.label('name'),
      head: true,
      sort: 'name',
      cell: row => (
        <span className="bai-status">
          <PageLink className="bai-name" to={`${noun.path}/${encodeURIComponent(row.id)}`}>
            {titleOf(noun, row)}
          </PageLink>
          {Badges ? (
            <span className="bai-badges">
              <Badges row={row} />
            </span>
          ) : null}
        </span>
      ),
      csv: row => row.name
    };
    const others = noun.columns.map(given => {
      const column = given as unknown as NounColumn<AnyRow>;
      return asColumn(column, kinds.get(column.key), words, language);
    });
    return [name, ...others, created(t, language)];
  }, [noun, words, t, language]);
}

function asColumn(
  column: NounColumn<AnyRow>,
  kind: ReturnType<typeof fieldsOf>[number]['kind'] | undefined,
  words: NounWords,
  language: string
): ListColumn<AnyRow> {
  const { key, sort, align, hidden, cell: Cell } = column;
  return {
    key,
    title: words.label(key),
    cell: row =>
      Cell ? (
        <Cell row={row} />
      ) : kind ? (
        <Value kind={kind} field={key} value={row[key]} domain={row.domain as string} />
      ) : (
        <>{asText(row[key]) || '–'}</>
      ),
    csv: row => (kind ? plain(kind, key, row[key], words.t, language) : asText(row[key])),
    ...(sort ? { sort: key } : {}),
    ...(align ? { align } : {}),
    ...(hidden ? { hidden } : {})
  };
}

const asText = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');

function created(t: NounWords['t'], language: string): ListColumn<AnyRow> {
  return {
    key: 'created_at',
    title: t('form.created'),
    sort: 'created_at',
    hidden: true,
    cell: row => <RelativeTime iso={String(row.created_at)} language={language} />,
    csv: row => String(row.created_at)
  };
}

function useFilters(noun: AnyNoun, words: NounWords): Filter[] {
  const { t } = words;
  const host = useHost();
  const referred = (noun.filters ?? []).flatMap(({ of }) =>
    typeof of === 'object' && 'noun' in of ? [of.noun] : []
  );
  const domains = useNames(host, 'domains', referred.includes('domains'));
  const groups = useNames(host, 'resource-groups', referred.includes('resource-groups'));
  const registries = useNames(host, 'registries', referred.includes('registries'));
  return useMemo(() => {
    const names: Record<string, string[]> = {
      domains,
      'resource-groups': groups,
      registries
    };
    return (noun.filters ?? []).map(({ key, of }): Filter => {
      const title = words.label(key);
      if (of === 'flag') {
        const options = ['true', 'false'].map(value => ({
          value,
          text: t(value === 'true' ? 'form.yes' : 'form.no')
        }));
        return { key, title, options };
      }
      if ('noun' in of) {
        return { key, title, suggestions: names[of.noun] ?? [] };
      }
      const options = of.map(value => ({ value, text: valueWord(t, key, value) }));
      return { key, title, options };
    });
  }, [noun, words, t, domains, groups, registries]);
}

const NONE: string[] = [];

function useNames(
  host: Host,
  noun: 'domains' | 'resource-groups' | 'registries',
  asked: boolean
) {
  const { data } = useQuery({
    ...choicesQuery(host, noun, ''),
    enabled: host.visible && asked,
    select: page => page.items.map(row => row.name)
  });
  return data ?? NONE;
}

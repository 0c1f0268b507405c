/** The list of sessions: its columns, filters, and what is asked of the service. */
import type { Session } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { SquareTerminal } from 'lucide-react';
import { useContext, useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import type { TFunction } from 'i18next';
import { useHost } from '../host';
import { RelativeTime } from '../kit/RelativeTime';
import type { Filter, ListColumn, ListOf, ListView } from '../lists';
import { PageLink } from '../PageLink';
import { keepPlaces, keys, loadSessions } from '../queries';
import { describeSlots, listSlots } from '../slots';
import { Elapsed, elapsedOf } from './Elapsed';
import { NewSession } from './NewSession';
import { SessionActions } from './SessionTable';
import { StatusWithReason } from './SessionStatus';
import { isEnded, STATUSES } from './status';
import { UsageCell } from './UsageCell';
import { UsageContext } from './usage';
import { EVERYBODY, type SessionsView } from './view';

/** Everything that can narrow it, as it is written in the address. */
export interface Choices {
  /** `live`, `ended` or `all`. */
  period: string;
  type: string;
  everybody: boolean;
}

export const readChoices = (filters: Record<string, string>): Choices => ({
  period: filters.status ?? 'live',
  type: filters.type ?? '',
  everybody: filters.all === '1'
});

/** What the cache calls a page, so that events can be put into it. */
export function viewOf(view: ListView, me: string): SessionsView {
  const { period, type, everybody } = readChoices(view.filters);
  const { state = '', owner = '', project = '', group = '' } = view.filters;
  return {
    status: state || period,
    owner: owner || (everybody ? EVERYBODY : me),
    order: view.order,
    after: view.after,
    limit: view.limit,
    search: view.search,
    type,
    project,
    group
  };
}

interface Options {
  me: string;
  /** Whether one may look at what others have. */
  sees: boolean;
  everybody: boolean;
  projects: readonly string[];
  groups: readonly string[];
  bulk: ListOf<Session>['bulk'] | undefined;
  onStop(session: Session): void;
  onRows(sessions: Session[]): void;
}

export function useSessionList(options: Options): ListOf<Session> {
  const { t } = useTranslation();
  const host = useHost();
  const client = useQueryClient();
  const { me, everybody, bulk, onStop, onRows } = options;
  const columns = useSessionColumns(everybody);
  const owner = everybody ? EVERYBODY : me;
  const filters = filtersOf(options, t);
  return {
    name: 'sessions',
    caption: t('sessions.title'),
    columns,
    filters,
    searches: t('sessionList.search'),
    order: '-created_at',
    load: async (view, signal) =>
      keepPlaces(client, await loadSessions(host, viewOf(view, owner), me, signal)),
    queryKey: view => keys.page(viewOf(view, owner)),
    followed: true,
    enabled: me !== '',
    onRows,
    rowKey: session => session.id,
    rowName: session => session.name,
    actions: session => <SessionActions session={session} onStop={onStop} />,
    dimmed: session => isEnded(session.status),
    ...(bulk ? { bulk } : {}),
    empty: {
      icon: <SquareTerminal size={32} />,
      title: t('sessions.emptyAllTitle'),
      text: t('sessions.emptyLiveText'),
      action: <NewSession />
    }
  };
}

function filtersOf({ everybody, projects, groups }: Options, t: TFunction): Filter[] {
  const several = (names: readonly string[]) =>
    names.map(name => ({ value: name, text: name }));
  const states = STATUSES.map(value => ({ value, text: t(`status.${value}`) }));
  const filters: (Filter | false)[] = [
    { key: 'status', title: t('sessions.filter'), outside: true },
    { key: 'type', title: t('sessionList.type'), outside: true },
    { key: 'all', title: t('sessions.everybody'), outside: true },
    { key: 'state', title: t('sessions.status'), options: states },
    everybody && { key: 'owner', title: t('sessions.owner') },
    (projects.length > 1 || everybody) && {
      key: 'project',
      title: t('session.project'),
      ...(everybody ? { suggestions: projects } : { options: several(projects) })
    },
    groups.length > 1 && {
      key: 'group',
      title: t('sessionList.group'),
      options: several(groups)
    }
  ];
  return filters.filter(filter => filter !== false);
}

function useSessionColumns(everybody: boolean): ListColumn<Session>[] {
  const { t } = useTranslation();
  const { language } = useHost();
  return useMemo<ListColumn<Session>[]>(
    () => [
      {
        key: 'name',
        title: t('sessions.name'),
        head: true,
        sort: 'name',
        cell: session => <SessionName session={session} />,
        csv: session => session.name
      },
      {
        key: 'owner',
        title: t('sessions.owner'),
        sort: 'owner',
        hidden: !everybody,
        cell: session => session.owner,
        csv: session => session.owner
      },
      {
        key: 'status',
        title: t('sessions.status'),
        cell: session => <StatusWithReason session={session} />,
        csv: session => session.status
      },
      {
        key: 'type',
        title: t('sessionList.type'),
        hidden: true,
        cell: session => t(`sessionType.${session.type}`),
        csv: session => session.type
      },
      {
        key: 'image',
        title: t('sessions.environment'),
        cell: session => session.image,
        csv: session => session.image
      },
      {
        key: 'slots',
        title: t('sessions.resources'),
        cell: session => <Slots session={session} language={language} />,
        csv: session => describeSlots(session.slots, t, 'en')
      },
      {
        key: 'usage',
        title: t('sessionList.usage'),
        cell: session => <Usage session={session} />
      },
      {
        key: 'elapsed',
        title: t('sessionList.elapsed'),
        align: 'end',
        cell: session => <Elapsed session={session} />,
        csv: session => String(Math.round(elapsedOf(session, Date.now()) ?? 0))
      },
      {
        key: 'node',
        title: t('sessions.node'),
        hidden: true,
        cell: session => session.agent ?? '–',
        csv: session => session.agent ?? ''
      },
      {
        key: 'project',
        title: t('session.project'),
        hidden: true,
        cell: session => session.project,
        csv: session => session.project
      },
      {
        key: 'group',
        title: t('sessionList.group'),
        hidden: true,
        cell: session => session.resource_group ?? '–',
        csv: session => session.resource_group ?? ''
      },
      {
        key: 'priority',
        title: t('sessionList.priority'),
        sort: 'priority',
        align: 'end',
        hidden: true,
        cell: session => session.priority,
        csv: session => String(session.priority)
      },
      {
        key: 'created',
        title: t('sessions.created'),
        sort: 'created_at',
        hidden: true,
        cell: session => <RelativeTime iso={session.created_at} language={language} />,
        csv: session => session.created_at
      },
      {
        key: 'id',
        title: t('session.id'),
        hidden: true,
        cell: session => <code>{session.id}</code>,
        csv: session => session.id
      }
    ],
    [t, language, everybody]
  );
}

export function SessionName({ session }: { session: Session }): JSX.Element {
  const { t } = useTranslation();
  return (
    <span className="bai-lines">
      <PageLink className="bai-name" to={`/sessions/${session.id}`}>
        {session.name}
      </PageLink>
      {session.type === 'interactive' ? null : (
        <span className="bai-reason">{t(`sessionType.${session.type}`)}</span>
      )}
    </span>
  );
}

function Slots({ session, language }: { session: Session; language: string }): JSX.Element {
  const { t } = useTranslation();
  const count = session.cluster_size ?? 1;
  return (
    <span className="bai-slots">
      {listSlots(session.slots, t, language).map(text => (
        <span key={text}>{text}</span>
      ))}
      {count > 1 ? <span className="bai-reason">{t('sessions.inEach', { count })}</span> : null}
    </span>
  );
}

function Usage({ session }: { session: Session }): JSX.Element {
  const usage = useContext(UsageContext)[session.id];
  return <UsageCell usage={session.status === 'RUNNING' ? usage : undefined} />;
}

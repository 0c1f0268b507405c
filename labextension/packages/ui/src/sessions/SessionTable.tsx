import type { Session } from '@backendai/api';
import { ExternalLink, Square } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { DataTable, type Column } from '../kit/DataTable';
import { RelativeTime } from '../kit/RelativeTime';
import { PageLink } from '../PageLink';
import { useLooksOnly } from '../pages/useLooksOnly';
import { listSlots } from '../slots';
import { canOpen, canStop, isEnded } from './status';
import { StatusWithReason } from './SessionStatus';
import type { Order } from './view';

interface Props {
  sessions: Session[];
  showOwner: boolean;
  order?: Order;
  onOrder?(order: Order): void;
  onStop(session: Session): void;
}

export function SessionTable(props: Props): JSX.Element {
  const { t } = useTranslation();
  const { sessions, order, onOrder } = props;
  return (
    <DataTable
      caption={t('sessions.caption', { count: sessions.length })}
      columns={useColumns(props)}
      rows={sessions}
      rowKey={session => session.id}
      dimmed={session => isEnded(session.status)}
      sortLabel={title => t('sessions.sortBy', { title })}
      {...(order && onOrder ? { order, onOrder: next => onOrder(next as Order) } : {})}
    />
  );
}

function useColumns({ showOwner, onStop }: Props): Column<Session>[] {
  const { t } = useTranslation();
  const { language } = useHost();
  const columns: (Column<Session> | false)[] = [
    {
      key: 'name',
      title: t('sessions.name'),
      head: true,
      cell: session => <SessionName session={session} />
    },
    showOwner && { key: 'owner', title: t('sessions.owner'), cell: session => session.owner },
    {
      key: 'status',
      title: t('sessions.status'),
      cell: session => <StatusWithReason session={session} />
    },
    { key: 'image', title: t('sessions.environment'), cell: session => session.image },
    {
      key: 'slots',
      title: t('sessions.resources'),
      cell: session => <Slots session={session} language={language} />
    },
    { key: 'node', title: t('sessions.node'), cell: session => session.agent ?? '–' },
    {
      key: 'created',
      title: t('sessions.created'),
      sort: 'created_at',
      cell: session => <SessionAge session={session} language={language} />
    },
    {
      key: 'actions',
      title: t('sessions.actions'),
      quiet: true,
      align: 'end',
      cell: session => <SessionActions session={session} onStop={onStop} />
    }
  ];
  return columns.filter(column => column !== false);
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

function SessionAge({
  session,
  language
}: {
  session: Session;
  language: string;
}): JSX.Element {
  const { t } = useTranslation();
  return (
    <span className="bai-status">
      <RelativeTime iso={session.created_at} language={language} />
      {session.started_at ? (
        <span className="bai-reason">
          {t('sessions.started')} <RelativeTime iso={session.started_at} language={language} />
        </span>
      ) : null}
    </span>
  );
}

function SessionName({ session }: { session: Session }): JSX.Element {
  return (
    <PageLink className="bai-name" to={`/sessions/${session.id}`}>
      {session.name}
    </PageLink>
  );
}

export function SessionActions({
  session,
  onStop
}: {
  session: Session;
  onStop(session: Session): void;
}): JSX.Element | null {
  const { t } = useTranslation();
  const { name, status, url } = session;
  if (useLooksOnly()) {
    return null;
  }
  return (
    <span className="bai-actions">
      {canOpen(status) && url ? (
        <Button
          size="small"
          href={url}
          newTab
          icon={<ExternalLink size={14} aria-hidden />}
          aria-label={t('sessions.openLabel', { name })}
        >
          {t('sessions.open')}
        </Button>
      ) : null}
      {canStop(status) ? (
        <Button
          size="small"
          kind="quiet"
          icon={<Square size={12} fill="currentcolor" aria-hidden />}
          aria-label={t('sessions.stopLabel', { name })}
          onClick={() => onStop(session)}
        >
          {t('sessions.stop')}
        </Button>
      ) : null}
    </span>
  );
}

/** A page of sessions with everything around it: waiting, nothing, failure, more. */
import { useQuery } from '@tanstack/react-query';
import { ChevronLeft, ChevronRight, SquareTerminal } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { EmptyState, Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { pageQuery } from '../queries';
import { usePolling } from '../stream';
import { NewSession } from './NewSession';
import { SessionTable } from './SessionTable';
import { useStopSession } from './stop';
import { ROWS, type Order, type SessionsView, type StatusFilter } from './view';

export { LoadError };

interface Props {
  status: StatusFilter;
  owner: string;
  showOwner: boolean;
  limit?: number;
  order: Order;
  onOrder?(order: Order): void;
}

/** Give this a `key` of its filter: cursors of one filter mean nothing in another. */
export function SessionList({ limit = ROWS, ...props }: Props): JSX.Element {
  const { status, owner, order, showOwner, onOrder } = props;
  const { t } = useTranslation();
  const host = useHost();
  const [cursors, setCursors] = useState<string[]>([]);
  const { ask, dialog } = useStopSession();
  const polling = usePolling();
  const view: SessionsView = { status, owner, order, after: cursors.at(-1) ?? '', limit };
  const { data, error, refetch, isPlaceholderData } = useQuery(pageQuery(host, view, polling));

  if (!data) {
    return error ? (
      <LoadError error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton rows={5} label={t('state.loading')} />
    );
  }
  const { items } = data;
  return (
    <div aria-busy={isPlaceholderData}>
      {error ? <LoadError error={error} stale onRetry={() => void refetch()} /> : null}
      {items.length ? (
        <div className="bai-card bai-table-card">
          <SessionTable
            sessions={items}
            showOwner={showOwner}
            order={order}
            onStop={ask}
            {...(onOrder ? { onOrder } : {})}
          />
        </div>
      ) : (
        <NoSessions status={status} later={cursors.length > 0} />
      )}
      {data.next || cursors.length ? (
        <nav className="bai-pager" aria-label={t('sessions.pages')}>
          <Button
            disabled={!cursors.length}
            icon={<ChevronLeft size={16} aria-hidden />}
            onClick={() => setCursors(cursors.slice(0, -1))}
          >
            {t('sessions.newer')}
          </Button>
          <span>{t('sessions.page', { page: cursors.length + 1 })}</span>
          <Button
            disabled={!data.next}
            icon={<ChevronRight size={16} aria-hidden />}
            onClick={() => data.next && setCursors([...cursors, data.next])}
          >
            {t('sessions.older')}
          </Button>
        </nav>
      ) : null}
      {dialog}
    </div>
  );
}

function NoSessions({ status, later }: { status: StatusFilter; later: boolean }): JSX.Element {
  const { t } = useTranslation();
  if (later) {
    return <p className="bai-nothing">{t('sessions.emptyPage')}</p>;
  }
  const kind = { live: 'Live', ended: 'Ended', all: 'All' }[status];
  return (
    <EmptyState
      icon={<SquareTerminal size={32} />}
      title={t(`sessions.empty${kind}Title`)}
      text={t(`sessions.empty${kind}Text`)}
      action={status === 'ended' ? null : <NewSession />}
    />
  );
}

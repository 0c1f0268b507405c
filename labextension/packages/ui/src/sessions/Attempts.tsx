/** What the scheduler has tried for a session: like ones in a row are one line. */
import { unwrap, type Schemas, type ShownSession } from '@backendai/api';
import { useInfiniteQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, Clock } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { Button } from '../kit/Button';
import { DataTable } from '../kit/DataTable';
import { EmptyState, Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { keys } from '../queries';
import { usePolling } from '../stream';
import { exactly } from '../times';
import { isEnded } from './status';

type Attempt = Schemas['Attempt'];

export function Attempts({ session }: { session: ShownSession }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } =
    useInfiniteQuery({
      queryKey: [...keys.attempts, session.id],
      initialPageParam: 0,
      queryFn: ({ pageParam, signal }) =>
        unwrap(
          host.api.GET('/api/sessions/{session_id}/history', {
            params: {
              path: { session_id: session.id },
              query: { after: pageParam, limit: 100 }
            },
            signal
          })
        ),
      getNextPageParam: page => page.next ?? undefined,
      refetchInterval: isEnded(session.status) ? false : polling,
      enabled: host.visible
    });
  const rows = data?.pages.flatMap(page => page.items) ?? [];
  if (!data) {
    return error ? (
      <LoadError error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton rows={4} label={t('state.loading')} />
    );
  }
  if (rows.length === 0) {
    return (
      <EmptyState
        icon={<Clock size={32} />}
        title={t('attempts.noneTitle')}
        text={t('attempts.noneText')}
      />
    );
  }
  return (
    <div className="bai-stack">
      {error ? <LoadError error={error} stale onRetry={() => void refetch()} /> : null}
      <div className="bai-card bai-table-card">
        <DataTable
          caption={t('attempts.title')}
          rows={rows}
          rowKey={row => String(row.id)}
          columns={[
            {
              key: 'when',
              title: t('attempts.when'),
              head: true,
              cell: row => <When attempt={row} />
            },
            {
              key: 'phase',
              title: t('attempts.phase'),
              cell: row => t(`attempts.${row.phase}`, { defaultValue: row.phase })
            },
            {
              key: 'result',
              title: t('attempts.result'),
              cell: row => <Result attempt={row} />
            },
            {
              key: 'message',
              title: t('attempts.message'),
              cell: row => (row.message ? <FromService text={row.message} /> : '–')
            },
            {
              key: 'count',
              title: t('attempts.count'),
              align: 'end',
              cell: row => <span className="bai-number">{row.attempts}</span>
            }
          ]}
        />
      </div>
      {hasNextPage ? (
        <p>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {t('attempts.more')}
          </Button>
        </p>
      ) : null}
    </div>
  );
}

function When({ attempt }: { attempt: Attempt }): JSX.Element {
  const { language } = useHost();
  const { first_at: first, last_at: last } = attempt;
  return (
    <span className="bai-lines bai-number">
      <time dateTime={first}>{exactly(first, language)}</time>
      {last === first ? null : (
        <time dateTime={last} className="bai-reason">
          – {exactly(last, language)}
        </time>
      )}
    </span>
  );
}

const LOOKS = {
  placed: { tone: 'success', Icon: CircleCheck },
  reserved: { tone: 'progress', Icon: Clock },
  waiting: { tone: 'warning', Icon: Clock },
  preempted: { tone: 'warning', Icon: CircleX },
  expired: { tone: 'neutral', Icon: CircleX }
} as const;

function Result({ attempt }: { attempt: Attempt }): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon } = LOOKS[attempt.result] ?? LOOKS.waiting;
  return (
    <Badge tone={tone} icon={<Icon size={14} />}>
      {t(`attempts.${attempt.result}`, { defaultValue: attempt.result })}
    </Badge>
  );
}

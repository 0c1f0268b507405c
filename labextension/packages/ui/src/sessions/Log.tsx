/** What a session has printed: followed, searched, and kept as a file. */
import { ApiError, unwrap, type Schemas, type ShownSession } from '@backendai/api';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ArrowDownToLine, Download, FileText, Search } from 'lucide-react';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { SelectField } from '../kit/SelectField';
import { EmptyState, Skeleton } from '../kit/States';
import { Switch } from '../kit/Switch';
import { saveAs } from '../lists';
import { LoadError } from '../LoadError';
import { keys } from '../queries';
import { useStreamState } from '../stream';
import { findLines, stripColours } from './loglines';
import { isEnded } from './status';
import { useFailure } from '../wording';

/** How often to ask for what is printed, while the stream does not tell of it. */
export const EVERY = 2000;
const MOST = 10_000;

type SessionLog = Schemas['SessionLog'];

export function Log({ session }: { session: ShownSession }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const say = useFailure();
  const containers = session.containers ?? [];
  const [container, setContainer] = useState('main1');
  const [attempt, setAttempt] = useState('');
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(true);
  const [wanted, setWanted] = useState('');
  const over = isEnded(session.status);
  const following = follow && !over;
  const streaming = useStreamState() === 'live';
  const number = attempt ? Number(attempt) : null;
  const { data, error, refetch } = useQuery<SessionLog>({
    queryKey: keys.log(session.id, container, number),
    queryFn: ({ signal }) =>
      unwrap(
        host.api.GET('/api/sessions/{session_id}/log', {
          params: {
            path: { session_id: session.id },
            query: {
              tail: MOST,
              host: container,
              // The answer says whether the stream will tell when there is more.
              ...(following ? { follow: true } : {}),
              ...(number === null ? {} : { attempt: number })
            }
          },
          signal
        })
      ),
    retry: false,
    refetchInterval: ({ state: { data: told, status } }) => {
      const tells = streaming && status === 'success' && told?.followed;
      return following && !tells && told?.live !== false ? EVERY : false;
    },
    // Whoever follows it no longer keeps what they look at.
    enabled: ({ state }) => host.visible && (following || over || !state.data)
  });
  useRefresh(session);
  const lines = useMemo(() => stripColours(data?.text ?? '').split('\n'), [data]);
  const nothing = error instanceof ApiError && [404, 409].includes(error.status);
  return (
    <div className="bai-log">
      <div className="bai-log-bar">
        {containers.length > 1 ? (
          <SelectField
            label={t('log.container')}
            value={container}
            options={containers.map(each => each.host)}
            onChange={setContainer}
          />
        ) : null}
        {session.attempts > 1 ? (
          <SelectField
            label={t('log.attempt')}
            value={attempt}
            options={[
              { value: '', text: t('log.latest') },
              ...Array.from({ length: session.attempts }, (_, index) => ({
                value: String(index + 1),
                text: String(index + 1)
              }))
            ]}
            onChange={setAttempt}
          />
        ) : null}
        <Find lines={lines} value={wanted} onChange={setWanted} />
        {over ? null : <Switch label={t('log.follow')} checked={follow} onChange={setFollow} />}
        <Switch label={t('log.wrap')} checked={wrap} onChange={setWrap} />
        <Button
          icon={<Download size={16} aria-hidden />}
          disabled={!data?.text}
          onClick={() =>
            saveAs(
              new Blob([data?.text ?? ''], { type: 'text/plain' }),
              `${session.name}-${container}.log`
            )
          }
        >
          {t('log.download')}
        </Button>
      </div>
      {error && !nothing ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {nothing || data?.text === '' ? (
        <EmptyState
          icon={<FileText size={32} />}
          title={t('log.noneTitle')}
          text={nothing ? say(error) : t('log.noneText')}
        />
      ) : null}
      {!data && !error ? <Skeleton rows={6} label={t('state.loading')} /> : null}
      {data?.text ? (
        <>
          {data.clipped ? <p className="bai-help">{t('log.clipped')}</p> : null}
          <Lines lines={lines} wanted={wanted} wrap={wrap} follow={follow && !over} />
        </>
      ) : null}
    </div>
  );
}

/** What prints, and whether anybody tells of it, changes with where a session stands. */
function useRefresh({ id, status, attempts }: ShownSession): void {
  const client = useQueryClient();
  const seen = useRef('');
  useEffect(() => {
    const now = `${id} ${status} ${attempts}`;
    if (seen.current && seen.current !== now) {
      void client.invalidateQueries({ queryKey: keys.logs(id) });
    }
    seen.current = now;
  }, [client, id, status, attempts]);
}

function Find({
  lines,
  value,
  onChange
}: {
  lines: string[];
  value: string;
  onChange(value: string): void;
}): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const found = useMemo(() => findLines(lines, value), [lines, value]);
  return (
    <span className="bai-log-find">
      <span className="bai-search">
        <label htmlFor={id} className="bai-hidden">
          {t('log.search')}
        </label>
        <Search size={16} aria-hidden />
        <input
          id={id}
          type="search"
          placeholder={t('log.search')}
          value={value}
          onChange={event => onChange(event.target.value)}
        />
      </span>
      <span role="status" className="bai-reason">
        {value.trim() ? t('log.found', { count: found.length }) : ''}
      </span>
    </span>
  );
}

const Scrolled = 'div';

interface LinesProps {
  lines: string[];
  wanted: string;
  wrap: boolean;
  follow: boolean;
}

/** Scrolls along with what comes, unless somebody has scrolled up to read. */
function Lines({ lines, wanted, wrap, follow }: LinesProps): JSX.Element {
  const { t } = useTranslation();
  const place = useRef<HTMLDivElement>(null);
  const [below, setBelow] = useState(true);
  const shown = useMemo(() => {
    const found = new Set(findLines(lines, wanted));
    return wanted.trim() ? lines.filter((_, index) => found.has(index)) : lines;
  }, [lines, wanted]);
  const toEnd = (): void => {
    place.current?.scrollTo({ top: place.current.scrollHeight });
  };
  useEffect(() => {
    if (follow && below) {
      toEnd();
    }
  }, [shown, follow, below]);
  return (
    <div className="bai-log-place">
      {/* Whoever uses the keyboard alone has to reach it to scroll. */}
      <Scrolled
        ref={place}
        className="bai-log-lines"
        data-wrap={wrap ? '' : undefined}
        tabIndex={0}
        role="region"
        aria-label={t('log.title')}
        onScroll={event => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          setBelow(scrollHeight - scrollTop - clientHeight < 40);
        }}
      >
        <pre>{shown.join('\n')}</pre>
      </Scrolled>
      {below ? null : (
        <Button
          size="small"
          icon={<ArrowDownToLine size={14} aria-hidden />}
          onClick={() => {
            setBelow(true);
            toEnd();
          }}
        >
          {t('log.toEnd')}
        </Button>
      )}
    </div>
  );
}

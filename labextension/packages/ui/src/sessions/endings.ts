/** People are told of their sessions that end, whatever they look at meanwhile. */
import type { EventMessage, Me, Session } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost, type NoticeLevel } from '../host';
import { keys } from '../queries';
import { wordOf } from './status';

/** Ends that come together are told together, in milliseconds. */
export const PAUSE = 1000;
/** So many are told one by one. */
const FEW = 3;
const ENDS = ['session.terminated', 'session.failed', 'session.cancelled'];
const LEVELS: readonly NoticeLevel[] = ['error', 'warning', 'info', 'success'];

function levelOf({ status, result }: Session): NoticeLevel {
  if (status === 'ERROR' || result === 'failure') {
    return 'error';
  }
  if (status === 'CANCELLED') {
    return 'warning';
  }
  return result === 'success' ? 'success' : 'info';
}

/** Whether *event* tells of an end that *me* has not asked for. */
function isNews({ kind, session }: EventMessage, me: string | undefined): boolean {
  return (
    ENDS.includes(kind) && session?.owner === me && session?.reason !== `stopped by ${me ?? ''}`
  );
}

/** Returns what has to hear every event. */
export function useEndings(): (event: EventMessage) => void {
  const { t } = useTranslation();
  const { notify } = useHost();
  const client = useQueryClient();
  const ended = useRef<Session[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const flush = useRef(() => undefined);
  useEffect(() => {
    flush.current = () => {
      const sessions = ended.current;
      ended.current = [];
      if (sessions.length > FEW) {
        const levels = sessions.map(levelOf);
        const worst = LEVELS.find(level => levels.includes(level)) ?? 'info';
        notify(worst, t('notices.ended', { count: sessions.length }));
      } else {
        sessions.forEach(session =>
          notify(levelOf(session), `${session.name}: ${t(wordOf(session))}`)
        );
      }
    };
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(
    event => {
      const me = client.getQueryData<Me>(keys.me)?.name;
      if (!event.session || !isNews(event, me)) {
        return;
      }
      if (!ended.current.length) {
        timer.current = setTimeout(() => flush.current(), PAUSE);
      }
      ended.current.push(event.session);
    },
    [client]
  );
}

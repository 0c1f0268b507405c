/** Which ends of sessions people are told of, and in which words. */
import type { EventMessage, ServerEvent, Session } from '@backendai/api';
import type { TFunction } from 'i18next';
import type { NoticeLevel } from '../host';
import { wordOf } from './status';

/** Ends that come together are told together, in milliseconds. */
export const PAUSE = 1000;
/** So many are told one by one. */
const FEW = 3;
const ENDS = ['session.terminated', 'session.failed', 'session.cancelled'];
const LEVELS: readonly NoticeLevel[] = ['error', 'warning', 'info', 'success'];

/** What the service says of ends that {name} has asked for, as its phrase book has it. */
export const ASKED_FOR = [
  'stopped by {name}',
  'stopped by {name} by force',
  'cancelled by {name} before it started'
];

/** What the stream told, if it is a fact. */
export function readFact(received: ServerEvent): EventMessage | null {
  if (received.event !== 'session') {
    return null;
  }
  try {
    return JSON.parse(received.data) as EventMessage;
  } catch {
    return null; // a newer service may send other things
  }
}

/** Whether *event* tells of an end that *me* has not asked for. */
function isNews({ kind, session }: EventMessage, me = ''): boolean {
  const own = ASKED_FOR.map(template => template.replace('{name}', () => me));
  return ENDS.includes(kind) && session?.owner === me && !own.includes(session.reason);
}

/** Returns what has to hear every fact, and to whom it happens. */
export function gatherEnds(
  tell: (ended: readonly Session[]) => void
): (event: EventMessage, me: string | undefined) => void {
  let ended: Session[] = [];
  return (event, me) => {
    if (!event.session || !isNews(event, me)) {
      return;
    }
    ended.push(event.session);
    if (ended.length === 1) {
      setTimeout(() => {
        tell(ended);
        ended = [];
      }, PAUSE);
    }
  };
}

export interface Said {
  level: NoticeLevel;
  text: string;
}

function levelOf({ status, result }: Session): NoticeLevel {
  if (status === 'ERROR' || result === 'failure') {
    return 'error';
  }
  if (status === 'CANCELLED') {
    return 'warning';
  }
  return result === 'success' ? 'success' : 'info';
}

/** What to tell of those that have ended. */
export function sayEnds(ended: readonly Session[], t: TFunction): readonly Said[] {
  if (ended.length <= FEW) {
    return ended.map(each => ({
      level: levelOf(each),
      text: `${each.name}: ${t(wordOf(each))}`
    }));
  }
  const levels = ended.map(levelOf);
  const level = LEVELS.find(each => levels.includes(each)) ?? 'info';
  return [{ level, text: t('notices.ended', { count: ended.length }) }];
}

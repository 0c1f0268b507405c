import type { Session, SessionStatus } from '@backendai/api';
import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleStop,
  Clock,
  LoaderCircle,
  type LucideIcon
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { FromService } from '../FromService';
import { Badge } from '../kit/Badge';
import { Place } from './Waiting';
import { usePlace } from './why';
import { toneOf } from './status';

const ICONS: Partial<Record<SessionStatus, LucideIcon>> = {
  PENDING: Clock,
  RESERVED: Clock,
  RUNNING: CircleCheck,
  PREEMPTED: Clock,
  TERMINATED: CircleStop,
  ERROR: CircleAlert,
  CANCELLED: Ban
};

/** What became of a job; only one that somebody stopped does not say. */
const OUTCOMES = {
  success: { tone: 'neutral', Icon: CircleCheck, text: 'session.succeeded' },
  failure: { tone: 'error', Icon: CircleAlert, text: 'status.ERROR' },
  undefined: { tone: 'neutral', Icon: CircleStop, text: 'session.stopped' }
} as const;

export function SessionBadge({ session }: { session: Session }): JSX.Element {
  const { t } = useTranslation();
  const { status, result, type } = session;
  if (status === 'TERMINATED' && type === 'batch') {
    const { tone, Icon: Outcome, text } = OUTCOMES[result];
    return (
      <Badge tone={tone} icon={<Outcome size={14} />}>
        {t(text)}
      </Badge>
    );
  }
  const tone = toneOf(status);
  const Icon = ICONS[status] ?? LoaderCircle;
  return (
    <Badge
      tone={tone}
      icon={<Icon size={14} className={tone === 'progress' ? 'bai-spin' : ''} />}
    >
      {t(`status.${status}`, { defaultValue: status })}
    </Badge>
  );
}

/** The state, and below it what the service says about it. */
export function StatusWithReason({ session }: { session: Session }): JSX.Element {
  const { t } = useTranslation();
  const place = usePlace(session);
  const hint = t(`statusHint.${session.status}`, { defaultValue: '' });
  return (
    <span className="bai-status">
      <SessionBadge session={session} />
      {session.reason ? (
        <FromService text={session.reason} className="bai-reason" whole />
      ) : hint ? (
        <span className="bai-reason" title={hint}>
          {hint}
        </span>
      ) : null}
      <Place place={place} />
    </span>
  );
}

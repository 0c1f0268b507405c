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
import { toneOf, wordOf } from './status';

const ICONS: Partial<Record<SessionStatus, LucideIcon>> = {
  PENDING: Clock,
  RESERVED: Clock,
  RUNNING: CircleCheck,
  PREEMPTED: Clock,
  TERMINATED: CircleStop,
  ERROR: CircleAlert,
  CANCELLED: Ban
};

/** How it looks what became of a job. */
const OUTCOMES = {
  success: { tone: 'neutral', Icon: CircleCheck },
  failure: { tone: 'error', Icon: CircleAlert },
  undefined: { tone: 'neutral', Icon: CircleStop }
} as const;

export function SessionBadge({ session }: { session: Session }): JSX.Element {
  const { t } = useTranslation();
  const { status, result, type } = session;
  if (status === 'TERMINATED' && type === 'batch') {
    const { tone, Icon: Outcome } = OUTCOMES[result];
    return (
      <Badge tone={tone} icon={<Outcome size={14} />}>
        {t(wordOf(session))}
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

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
import { Badge } from '../kit/Badge';
import { Place } from './Waiting';
import { useWhy } from './why';
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

export function SessionBadge({ session }: { session: Session }): JSX.Element {
  const { t } = useTranslation();
  const { status, result } = session;
  if (status === 'TERMINATED' && result !== 'undefined') {
    const failed = result === 'failure';
    const Outcome = failed ? CircleAlert : CircleCheck;
    return (
      <Badge tone={failed ? 'error' : 'neutral'} icon={<Outcome size={14} />}>
        {failed ? t('status.ERROR') : t('session.succeeded')}
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
  const why = useWhy(session);
  const reason = session.reason || t(`statusHint.${session.status}`, { defaultValue: '' });
  return (
    <span className="bai-status">
      <SessionBadge session={session} />
      {reason ? <span className="bai-reason">{reason}</span> : null}
      <Place why={why} />
    </span>
  );
}

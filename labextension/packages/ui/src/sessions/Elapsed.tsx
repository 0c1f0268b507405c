import type { Session } from '@backendai/api';
import { useEffect, useState } from 'react';
import { showDuration } from '../durations';
import { useHost } from '../host';

const TICK = 15_000;

/** For how many seconds it has run, or ran; null if it never did. */
export function elapsedOf(session: Session, now: number): number | null {
  const { started_at: started, ended_at: ended } = session;
  if (!started) {
    return null;
  }
  return Math.max(0, ((ended ? Date.parse(ended) : now) - Date.parse(started)) / 1000);
}

/** How long a session has run; those that run count on. */
export function Elapsed({ session }: { session: Session }): JSX.Element {
  const { language } = useHost();
  const [now, setNow] = useState(() => Date.now());
  const counts = session.started_at !== null && session.ended_at === null;
  useEffect(() => {
    if (!counts) {
      return undefined;
    }
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => clearInterval(timer);
  }, [counts]);
  const seconds = elapsedOf(session, now);
  return (
    <span className="bai-number">
      {seconds === null
        ? '–'
        : showDuration(seconds < 60 ? seconds : seconds - (seconds % 60), language)}
    </span>
  );
}

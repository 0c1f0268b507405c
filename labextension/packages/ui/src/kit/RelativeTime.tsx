import { useEffect, useState } from 'react';
import { ago, exactly } from '../times';

const TICK = 15_000;

/** How long ago, and the exact time for those who point at it. */
export function RelativeTime({
  iso,
  language
}: {
  iso: string;
  language: string;
}): JSX.Element {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={iso} title={exactly(iso, language)}>
      {ago(iso, now, language)}
    </time>
  );
}

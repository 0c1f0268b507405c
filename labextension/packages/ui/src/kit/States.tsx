/** What a page shows when it has nothing, not yet, or not any more. */
import { useEffect, useState, type ReactNode } from 'react';

interface EmptyProps {
  icon: ReactNode;
  title: string;
  text: string;
  action?: ReactNode;
}

export function EmptyState({ icon, title, text, action }: EmptyProps): JSX.Element {
  return (
    <div className="bai-empty">
      <span className="bai-empty-icon" aria-hidden>
        {icon}
      </span>
      <p className="bai-empty-title">{title}</p>
      <p className="bai-empty-text">{text}</p>
      {action}
    </div>
  );
}

interface BannerProps {
  tone: 'info' | 'success' | 'warning' | 'error';
  icon: ReactNode;
  children: ReactNode;
  action?: ReactNode;
  /** Interrupt a screen reader; otherwise it is told when it has finished. */
  urgent?: boolean;
}

export function Banner({ tone, icon, children, action, urgent }: BannerProps): JSX.Element {
  return (
    <div role={urgent ? 'alert' : 'status'} className={`bai-banner bai-tone-${tone}`}>
      <span className="bai-banner-icon" aria-hidden>
        {icon}
      </span>
      <div className="bai-banner-text">{children}</div>
      {action}
    </div>
  );
}

const PATIENCE = 200;

/** Grey bars of about the right size, but only for what takes noticeably long. */
export function Skeleton({ rows, label }: { rows: number; label: string }): JSX.Element {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="bai-skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} data-shown={late ? '' : undefined} />
      ))}
    </div>
  );
}

import type { ReactNode } from 'react';

interface Props {
  tone: 'success' | 'progress' | 'neutral' | 'warning' | 'error';
  icon: ReactNode;
  children: ReactNode;
  title?: string;
}

/** A state: an icon and a word, and a colour for those who see it. */
export function Badge({ tone, icon, children, title }: Props): JSX.Element {
  return (
    <span className={`bai-badge bai-badge-${tone}`} title={title}>
      <span aria-hidden className="bai-badge-icon">
        {icon}
      </span>
      {children}
    </span>
  );
}

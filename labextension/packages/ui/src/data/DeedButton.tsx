import { useId, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import type { Reason } from './access';

interface Props {
  why: Reason | null;
  icon?: ReactNode;
  kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  size?: 'small' | 'medium';
  label?: string;
  onClick(): void;
  children: ReactNode;
}

/** A button that is there also for those who may not: it tells them why, and who can. */
export function DeedButton({ why, icon, kind, size, label, ...rest }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const id = useId();
  const reason = why ? t(`why.${why}`) : '';
  return (
    <>
      <Button
        icon={icon}
        {...(kind ? { kind } : {})}
        {...(size ? { size } : {})}
        {...(label ? { 'aria-label': label } : {})}
        {...(why ? { 'aria-disabled': true, 'aria-describedby': id, title: reason } : {})}
        // It is reached like any other, so that its reason is heard and seen.
        onClick={why ? () => host.notify('info', reason) : rest.onClick}
      >
        {rest.children}
      </Button>
      {why ? (
        <span id={id} className="bai-hidden">
          {reason}
        </span>
      ) : null}
    </>
  );
}

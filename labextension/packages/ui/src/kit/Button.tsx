import MuiButton from '@mui/material/Button';
import MuiIconButton from '@mui/material/IconButton';
import { LoaderCircle } from 'lucide-react';
import type { MouseEventHandler, ReactNode, Ref } from 'react';

interface Common {
  onClick?: MouseEventHandler<HTMLElement> | undefined;
  onPointerEnter?(): void;
  onFocus?(): void;
  href?: string | undefined;
  /** Open the link in a new tab. */
  newTab?: boolean;
  disabled?: boolean;
  'aria-haspopup'?: 'menu' | 'dialog';
  'aria-expanded'?: boolean;
  'aria-label'?: string;
  'aria-disabled'?: boolean;
  'aria-describedby'?: string;
  title?: string;
}

interface ButtonProps extends Common {
  kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  size?: 'small' | 'medium';
  icon?: ReactNode;
  autoFocus?: boolean;
  /** Sends the form it stands in. */
  submits?: boolean;
  /** What it asked for is under way. */
  busy?: boolean;
  children: ReactNode;
}

export function Button({
  kind = 'plain',
  size = 'medium',
  icon,
  href,
  newTab = false,
  submits = false,
  busy = false,
  children,
  ...rest
}: ButtonProps): JSX.Element {
  const variant = kind === 'plain' ? 'outlined' : kind === 'quiet' ? 'text' : 'contained';
  return (
    <MuiButton
      variant={variant}
      color={kind === 'danger' ? 'error' : kind === 'primary' ? 'primary' : 'inherit'}
      size={size}
      startIcon={busy ? <LoaderCircle size={16} aria-hidden className="bai-spin" /> : icon}
      aria-busy={busy || undefined}
      className={`bai-button bai-button-${kind}`}
      {...(submits ? { type: 'submit' } : {})}
      {...(href === undefined ? {} : linkTo(href, newTab))}
      {...rest}
    >
      {children}
    </MuiButton>
  );
}

interface IconButtonProps extends Common {
  label: string;
  /** Sends the form it stands in. */
  submits?: boolean;
  children: ReactNode;
  buttonRef?: Ref<HTMLButtonElement>;
}

/** A button whose words are spoken and shown on hover, not written. */
export function IconButton({
  label,
  href,
  newTab = false,
  submits = false,
  children,
  buttonRef,
  ...rest
}: IconButtonProps): JSX.Element {
  return (
    <MuiIconButton
      aria-label={label}
      title={label}
      ref={buttonRef}
      className="bai-icon-button"
      {...(submits ? { type: 'submit' } : {})}
      {...(href === undefined ? {} : linkTo(href, newTab))}
      {...rest}
    >
      {children}
    </MuiIconButton>
  );
}

function linkTo(href: string, newTab: boolean): Record<string, string> {
  return newTab ? { href, target: '_blank', rel: 'noopener' } : { href };
}

import MuiButton from '@mui/material/Button';
import MuiIconButton from '@mui/material/IconButton';
import type { MouseEventHandler, ReactNode, Ref } from 'react';

interface Common {
  onClick?: MouseEventHandler<HTMLElement> | undefined;
  href?: string | undefined;
  /** Open the link in a new tab. */
  newTab?: boolean;
  disabled?: boolean;
  'aria-haspopup'?: 'menu' | 'dialog';
  'aria-expanded'?: boolean;
  'aria-label'?: string;
  title?: string;
}

interface ButtonProps extends Common {
  kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  size?: 'small' | 'medium';
  icon?: ReactNode;
  autoFocus?: boolean;
  children: ReactNode;
}

export function Button({
  kind = 'plain',
  size = 'medium',
  icon,
  href,
  newTab = false,
  children,
  ...rest
}: ButtonProps): JSX.Element {
  const variant = kind === 'plain' ? 'outlined' : kind === 'quiet' ? 'text' : 'contained';
  return (
    <MuiButton
      variant={variant}
      color={kind === 'danger' ? 'error' : kind === 'primary' ? 'primary' : 'inherit'}
      size={size}
      startIcon={icon}
      className={`bai-button bai-button-${kind}`}
      {...(href === undefined ? {} : linkTo(href, newTab))}
      {...rest}
    >
      {children}
    </MuiButton>
  );
}

interface IconButtonProps extends Common {
  label: string;
  children: ReactNode;
  buttonRef?: Ref<HTMLButtonElement>;
}

/** A button whose words are spoken and shown on hover, not written. */
export function IconButton({
  label,
  href,
  newTab = false,
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

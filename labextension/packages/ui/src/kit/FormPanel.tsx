import MuiDialog from '@mui/material/Dialog';
import MuiDialogActions from '@mui/material/DialogActions';
import MuiDialogContent from '@mui/material/DialogContent';
import MuiDialogTitle from '@mui/material/DialogTitle';
import { useId, type FormEvent, type ReactNode } from 'react';
import { Button } from './Button';

interface Props {
  open: boolean;
  title: string;
  children: ReactNode;
  submit: string;
  /** Nothing where there is nothing left to decide. */
  cancel?: string;
  /** What is sent takes things away. */
  danger?: boolean;
  /** What was asked for is under way: nothing can be sent meanwhile. */
  busy?: boolean;
  /** Why it cannot be sent yet, in words; said beside the button. */
  blocked?: string | undefined;
  /** What went wrong with the last try, above the buttons. */
  error?: ReactNode;
  size?: 'small' | 'medium' | 'large';
  onSubmit(): void;
  onClose(): void;
}

const WIDTHS = { small: 'xs', medium: 'sm', large: 'md' } as const;

/** Whoever opens a form writes into it next. */
function focusFirst(form: HTMLFormElement | null): void {
  if (form && !form.contains(document.activeElement)) {
    form.querySelector<HTMLElement>(FIELDS)?.focus();
  }
}

const FIELDS = 'input:enabled:not([type="hidden"]), select:enabled, textarea:enabled';

export function FormPanel(props: Props): JSX.Element {
  const { open, title, children, busy = false, blocked, error, onSubmit, onClose } = props;
  const id = useId();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    // The form lies in the page's tree of components, maybe inside another form.
    event.stopPropagation();
    if (!busy && !blocked) {
      onSubmit();
    }
  };
  return (
    <MuiDialog
      open={open}
      onClose={busy ? () => undefined : onClose}
      aria-labelledby={`${id}-title`}
      slotProps={{ paper: { className: 'bai-dialog bai-root-of-dialog' } }}
      maxWidth={WIDTHS[props.size ?? 'small']}
      fullWidth
    >
      <form ref={focusFirst} onSubmit={send} noValidate className="bai-dialog-form">
        <MuiDialogTitle id={`${id}-title`} className="bai-dialog-title">
          {title}
        </MuiDialogTitle>
        <MuiDialogContent className="bai-dialog-fields">
          {children}
          {error ? <div role="alert">{error}</div> : null}
        </MuiDialogContent>
        <MuiDialogActions className="bai-dialog-actions">
          {blocked ? (
            <span id={`${id}-blocked`} className="bai-blocked">
              {blocked}
            </span>
          ) : null}
          {props.cancel ? (
            <Button onClick={onClose} disabled={busy}>
              {props.cancel}
            </Button>
          ) : null}
          <Button
            kind={props.danger ? 'danger' : 'primary'}
            submits
            busy={busy}
            {...(blocked ? { 'aria-disabled': true, 'aria-describedby': `${id}-blocked` } : {})}
          >
            {props.submit}
          </Button>
        </MuiDialogActions>
      </form>
    </MuiDialog>
  );
}

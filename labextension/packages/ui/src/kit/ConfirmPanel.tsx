import MuiDialog from '@mui/material/Dialog';
import MuiDialogActions from '@mui/material/DialogActions';
import MuiDialogContent from '@mui/material/DialogContent';
import MuiDialogTitle from '@mui/material/DialogTitle';
import { useId, type ReactNode } from 'react';
import { Button } from './Button';

interface Props {
  open: boolean;
  title: string;
  children: ReactNode;
  confirm: string;
  cancel: string;
  /** What was asked for is under way: it cannot be asked for twice. */
  busy?: boolean;
  /** What went wrong with the last try. */
  error?: ReactNode;
  onConfirm(): void;
  onCancel(): void;
}

export function ConfirmPanel({
  open,
  title,
  children,
  confirm,
  cancel,
  busy = false,
  error,
  onConfirm,
  onCancel
}: Props): JSX.Element {
  const titleId = useId();
  const textId = useId();
  return (
    <MuiDialog
      open={open}
      onClose={busy ? () => undefined : onCancel}
      aria-labelledby={titleId}
      aria-describedby={textId}
      slotProps={{ paper: { className: 'bai-dialog' } }}
      maxWidth="xs"
      fullWidth
    >
      <MuiDialogTitle id={titleId} className="bai-dialog-title">
        {title}
      </MuiDialogTitle>
      <MuiDialogContent id={textId} className="bai-dialog-text">
        {children}
        {error ? <div role="alert">{error}</div> : null}
      </MuiDialogContent>
      <MuiDialogActions className="bai-dialog-actions">
        <Button onClick={onCancel} disabled={busy} autoFocus>
          {cancel}
        </Button>
        <Button kind="danger" busy={busy} onClick={busy ? undefined : onConfirm}>
          {confirm}
        </Button>
      </MuiDialogActions>
    </MuiDialog>
  );
}

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
  onConfirm(): void;
  onCancel(): void;
}

/** Ask before something is lost. The harmless answer has the focus. */
export function ConfirmDialog({
  open,
  title,
  children,
  confirm,
  cancel,
  onConfirm,
  onCancel
}: Props): JSX.Element {
  const titleId = useId();
  const textId = useId();
  return (
    <MuiDialog
      open={open}
      onClose={onCancel}
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
      </MuiDialogContent>
      <MuiDialogActions className="bai-dialog-actions">
        <Button onClick={onCancel} autoFocus>
          {cancel}
        </Button>
        <Button kind="danger" onClick={onConfirm}>
          {confirm}
        </Button>
      </MuiDialogActions>
    </MuiDialog>
  );
}

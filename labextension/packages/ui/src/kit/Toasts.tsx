import MuiSnackbar from '@mui/material/Snackbar';
import { CircleAlert, CircleCheck, Info, TriangleAlert, X } from 'lucide-react';
import { useCallback, useState, type ReactNode } from 'react';
import type { NoticeLevel } from '../host';
import { IconButton } from './Button';

interface Toast {
  key: number;
  level: NoticeLevel;
  text: string;
}

const ICONS = {
  info: Info,
  success: CircleCheck,
  warning: TriangleAlert,
  error: CircleAlert
};

const SHOWN_FOR = 6000;

/** Short notices, one after the other; each pauses while the pointer is on it. */
export function useToasts(closeLabel: string): {
  notify(level: NoticeLevel, text: string): void;
  toasts: ReactNode;
} {
  const [queue, setQueue] = useState<Toast[]>([]);
  const [open, setOpen] = useState(false);
  const notify = useCallback((level: NoticeLevel, text: string) => {
    setQueue(old => [...old, { key: (old.at(-1)?.key ?? 0) + 1, level, text }]);
    setOpen(true);
  }, []);
  const shown = queue[0];
  const Icon = ICONS[shown?.level ?? 'info'];
  const toasts = (
    <MuiSnackbar
      key={shown?.key}
      open={open && shown !== undefined}
      autoHideDuration={SHOWN_FOR}
      onClose={(_, reason) => reason !== 'clickaway' && setOpen(false)}
      slotProps={{
        transition: {
          onExited: () => {
            setQueue(old => old.slice(1));
            setOpen(true);
          }
        }
      }}
    >
      <div role="status" className={`bai-toast bai-tone-${shown?.level ?? 'info'}`}>
        <Icon size={18} aria-hidden />
        <span>{shown?.text}</span>
        <IconButton label={closeLabel} onClick={() => setOpen(false)}>
          <X size={16} aria-hidden />
        </IconButton>
      </div>
    </MuiSnackbar>
  );
  return { notify, toasts };
}

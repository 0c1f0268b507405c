import { CircleAlert, CircleCheck, Info, TriangleAlert, Undo2, X } from 'lucide-react';
import { useCallback, useState, type ReactNode } from 'react';
import type { NoticeLevel } from '../host';
import { Button, IconButton } from './Button';
import { Toast } from './Toast';

export interface Notice {
  key: number;
  level: NoticeLevel;
  text: string;
  /** When it was said. */
  at: string;
  /** Takes back what it tells of; gone once that was done. */
  undo?: (() => void) | undefined;
  /** It has still to be shown, or is. */
  due: boolean;
}

export const NOTICE_ICONS = {
  info: Info,
  success: CircleCheck,
  warning: TriangleAlert,
  error: CircleAlert
};

/** How many notices are remembered until the page is left. */
const KEPT = 50;

export interface Notices {
  notify(level: NoticeLevel, text: string, undo?: () => void): void;
  /** The notice being shown, to be placed once. */
  toasts: ReactNode;
  /** Everything that was said, the newest first. */
  kept: Notice[];
  unread: number;
  markRead(): void;
  clear(): void;
  undo(notice: Notice): void;
}

interface Words {
  close: string;
  undo: string;
}

/** Short notices, one after the other; each pauses while the pointer is on it. */
export function useToasts({ close: closeWord, undo: undoWord }: Words): Notices {
  const [kept, setKept] = useState<Notice[]>([]);
  const [unread, setUnread] = useState(0);
  const notify = useCallback<Notices['notify']>((level, text, undo) => {
    const key = nextKey();
    const notice = { key, level, text, at: new Date().toISOString(), undo, due: true };
    setKept(old => [notice, ...old].slice(0, KEPT));
    setUnread(old => old + 1);
  }, []);
  const change = ({ key }: Notice, changes: Partial<Notice>): void =>
    setKept(old => old.map(each => (each.key === key ? { ...each, ...changes } : each)));
  const undo = (notice: Notice): void => {
    notice.undo?.();
    change(notice, { undo: undefined, due: false });
  };
  const markRead = useCallback(() => setUnread(0), []);
  const clear = useCallback(() => setKept([]), []);
  const shown = kept.filter(notice => notice.due).at(-1);
  const close = (): void => shown && change(shown, { due: false });
  const Icon = NOTICE_ICONS[shown?.level ?? 'info'];
  const toasts = shown ? (
    <Toast key={shown.key} onClose={close}>
      <div role="status" className={`bai-toast bai-tone-${shown.level}`}>
        <Icon size={18} aria-hidden />
        <span className="bai-toast-text">{shown.text}</span>
        {shown.undo ? (
          <Button
            size="small"
            kind="quiet"
            icon={<Undo2 size={14} aria-hidden />}
            onClick={() => undo(shown)}
          >
            {undoWord}
          </Button>
        ) : null}
        <IconButton label={closeWord} onClick={close}>
          <X size={16} aria-hidden />
        </IconButton>
      </div>
    </Toast>
  ) : null;
  return { notify, toasts, kept, unread, markRead, clear, undo };
}

let last = 0;

function nextKey(): number {
  last += 1;
  return last;
}

/** The question whether to leave what is not saved yet. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ConfirmDialog } from './kit/ConfirmDialog';
import { useLeaving } from './leaving';

export interface AskBeforeLeaving {
  /** What is asked; to be put on the page. */
  dialog: JSX.Element;
  /** Let who has saved go. */
  allow(): void;
  /** Do what loses the changes, after asking if there are any. */
  then(leave: () => void): void;
}

/** Have everybody asked before *dirty* changes are lost, and `discard` them then. */
export function useAskBeforeLeaving(
  dirty: boolean,
  discard?: () => void,
  words?: { title: string; text: string }
): AskBeforeLeaving {
  const { t } = useTranslation();
  const allowed = useRef(false);
  useEffect(() => {
    // Who was let go has saved what there was; what is changed afterwards is not saved.
    allowed.current = false;
  }, [dirty]);
  const [leave, setLeave] = useState<(() => void) | null>(null);
  const ask = useCallback((go: () => void) => {
    if (allowed.current) {
      go();
    } else {
      setLeave(() => go);
    }
  }, []);
  useLeaving(dirty, ask);
  const dialog = (
    <ConfirmDialog
      open={leave !== null}
      title={words?.title ?? t('unsaved.title')}
      confirm={t('unsaved.leave')}
      cancel={t('unsaved.stay')}
      onCancel={() => setLeave(null)}
      onConfirm={() => {
        discard?.();
        leave?.();
        setLeave(null);
      }}
    >
      <p>{words?.text ?? t('unsaved.text')}</p>
    </ConfirmDialog>
  );
  return {
    dialog,
    allow: () => {
      allowed.current = true;
    },
    then: go => (dirty ? ask(go) : go())
  };
}

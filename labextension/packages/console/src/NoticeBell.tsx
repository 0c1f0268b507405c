import { useHost } from '@backendai/ui';
import { Drawer, IconButton, NoticeList, type Notices } from '@backendai/ui/kit';
import { Bell } from 'lucide-react';
import { useCallback, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';

const KEY = ']';

/** Opens what was said since the page was opened; so does the key `]`. */
export function NoticeBell({ notices }: { notices: Notices }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const [open, setOpen] = useState(false);
  const { kept, unread, markRead } = notices;
  const show = useCallback(() => {
    setOpen(true);
    markRead();
  }, [markRead]);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const modified = event.ctrlKey || event.metaKey || event.altKey;
      if (event.key === KEY && !modified && !isTyping(event.target)) {
        event.preventDefault();
        show();
      }
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [show]);
  const close = (): void => {
    setOpen(false);
    markRead();
  };
  return (
    <>
      <span className="bai-bell">
        <IconButton
          label={unread ? t('notices.unread', { count: unread }) : t('notices.open')}
          aria-haspopup="dialog"
          aria-expanded={open}
          onClick={show}
        >
          <Bell size={18} aria-hidden />
        </IconButton>
        {unread ? (
          <span aria-hidden data-unread="">
            {unread > 9 ? '9+' : unread}
          </span>
        ) : null}
      </span>
      <Drawer open={open} side="end" label={t('notices.title')} onClose={close}>
        <NoticeList
          notices={kept}
          language={language}
          words={{
            title: t('notices.title'),
            none: t('notices.none'),
            clear: t('notices.clear'),
            undo: t('notices.undo'),
            close: t('app.close')
          }}
          onUndo={notices.undo}
          onClear={notices.clear}
          onClose={close}
        />
      </Drawer>
    </>
  );
}

/** Whether a key pressed there is text. */
function isTyping(target: EventTarget | null): boolean {
  const element = target instanceof HTMLElement ? target : null;
  const typed = 'input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]';
  return Boolean(element?.closest(typed));
}

import { BellOff, Undo2 } from 'lucide-react';
import { Button } from './Button';
import { RelativeTime } from './RelativeTime';
import { NOTICE_ICONS, type Notice } from './Toasts';

interface Words {
  title: string;
  none: string;
  clear: string;
  undo: string;
  close: string;
}

interface Props {
  notices: readonly Notice[];
  words: Words;
  language: string;
  onUndo(notice: Notice): void;
  onClear(): void;
  onClose(): void;
}

/** What was said since the page was opened, for those who were looking elsewhere. */
export function NoticeList(props: Props): JSX.Element {
  const { notices, words, language } = props;
  return (
    <section className="bai-root bai-notices" aria-label={words.title}>
      <div className="bai-notices-head">
        <h2>{words.title}</h2>
        {notices.length ? (
          <Button size="small" kind="quiet" onClick={props.onClear}>
            {words.clear}
          </Button>
        ) : null}
        <Button size="small" kind="quiet" autoFocus onClick={props.onClose}>
          {words.close}
        </Button>
      </div>
      {notices.length ? null : (
        <p className="bai-nothing">
          <BellOff size={16} aria-hidden /> {words.none}
        </p>
      )}
      <ol className="bai-notices-list">
        {notices.map(notice => {
          const Icon = NOTICE_ICONS[notice.level];
          return (
            <li key={notice.key} data-level={notice.level}>
              <Icon size={16} aria-hidden />
              <span>
                <span className="bai-notice-text">{notice.text}</span>
                <span className="bai-reason">
                  <RelativeTime iso={notice.at} language={language} />
                </span>
              </span>
              {notice.undo ? (
                <Button
                  size="small"
                  icon={<Undo2 size={14} aria-hidden />}
                  onClick={() => props.onUndo(notice)}
                >
                  {words.undo}
                </Button>
              ) : null}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** What was launched lately, and what is kept to be launched again. */
import { Bookmark, Ellipsis, History, Pencil, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { MenuButton } from '../kit/Menu';
import { RelativeTime } from '../kit/RelativeTime';
import { describeSlots } from '../slots';
import type { LaunchHistory, Launched } from './history';
import { NameDialog } from './StartCard';
import type { Wish } from './wish';

interface Props {
  history: LaunchHistory;
  onChoose(wish: Partial<Wish>): void;
}

export function Past({ history, onChoose }: Props): JSX.Element {
  const { t } = useTranslation();
  const [renamed, setRenamed] = useState<Launched | null>(null);
  const { recent, templates, save, rename } = history;
  const props = { history, onChoose, onRename: setRenamed };
  return (
    <>
      <Shelf
        title={t('launchPage.templates')}
        none={t('launchPage.noTemplates')}
        items={templates}
        {...props}
      />
      <Shelf
        title={t('launchPage.recent')}
        none={t('launchPage.noRecent')}
        items={recent}
        {...props}
      />
      <NameDialog
        key={renamed?.id ?? ''}
        open={renamed !== null}
        title={t(renamed?.kept ? 'launchPage.rename' : 'launchPage.keep')}
        name={renamed?.title ?? ''}
        onClose={() => setRenamed(null)}
        onName={title => {
          if (renamed?.kept) {
            rename(renamed.id, title);
          } else if (renamed) {
            save(renamed.wish, title);
          }
          setRenamed(null);
        }}
      />
    </>
  );
}

interface ShelfProps extends Props {
  title: string;
  none: string;
  items: Launched[];
  onRename(one: Launched): void;
}

function Shelf({ title, none, items, history, onChoose, onRename }: ShelfProps): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const remove = (one: Launched): void => {
    const before = history.all;
    history.remove(one.id);
    host.notify('info', t('launchPage.removed', { name: one.title }), () =>
      history.restore(before)
    );
  };
  return (
    <section className="bai-card bai-past" aria-label={title}>
      <h2>{title}</h2>
      {items.length ? null : <p className="bai-help">{none}</p>}
      <ul>
        {items.map(one => (
          <li key={one.id}>
            {one.kept ? <Bookmark size={16} aria-hidden /> : <History size={16} aria-hidden />}
            <span>
              <button type="button" className="bai-link" onClick={() => onChoose(one.wish)}>
                {one.title}
              </button>
              <span className="bai-reason">
                {one.wish.image} · {describeSlots(one.wish.slots ?? {}, t, host.language)}
              </span>
              {one.kept ? null : (
                <span className="bai-reason">
                  <RelativeTime iso={one.at} language={host.language} />
                </span>
              )}
            </span>
            <MenuButton
              label={t('launchPage.actionsOf', { name: one.title })}
              icon={<Ellipsis size={16} aria-hidden />}
              entries={[
                {
                  key: 'name',
                  text: t(one.kept ? 'launchPage.rename' : 'launchPage.keep'),
                  icon: one.kept ? (
                    <Pencil size={16} aria-hidden />
                  ) : (
                    <Bookmark size={16} aria-hidden />
                  ),
                  onSelect: () => onRename(one)
                },
                {
                  key: 'remove',
                  text: t('launchPage.remove'),
                  icon: <Trash2 size={16} aria-hidden />,
                  onSelect: () => remove(one)
                }
              ]}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

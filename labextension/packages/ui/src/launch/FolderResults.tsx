import type { Folder } from '@backendai/api';
import type { TFunction } from 'i18next';
import { CircleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { boundTo, comesByItself } from './mounts';
import type { FolderList } from './useFolders';

interface Props {
  list: FolderList;
  search: string;
  project: string;
  isChosen(folder: Folder): boolean;
  onToggle(folder: Folder): void;
}

/** What was found, to tick; the rest of it is fetched when somebody asks for it. */
export function FolderResults(props: Props): JSX.Element {
  const { list, search, project, isChosen, onToggle } = props;
  const { t } = useTranslation();
  const { items, hasMore, failed } = list;
  return (
    <>
      <p role="status" className="bai-help">
        {items ? describe(items.length, search, hasMore, t) : failed ? '' : t('state.loading')}
      </p>
      {failed ? (
        <p role="alert" className="bai-field-error">
          <CircleAlert size={14} aria-hidden /> {t('folders.failed')}
          <button type="button" className="bai-apply" onClick={list.retry}>
            {t('state.retry')}
          </button>
        </p>
      ) : null}
      {items?.length ? (
        <ul className="bai-found" aria-label={t('folders.found')}>
          {items.map(folder => (
            <Row
              key={folder.id}
              folder={folder}
              checked={isChosen(folder)}
              bound={boundTo(folder, project)}
              onToggle={() => onToggle(folder)}
            />
          ))}
          {hasMore ? (
            <li>
              <button
                type="button"
                className="bai-apply"
                onClick={event => {
                  goBefore(event.currentTarget); // what comes next is below it then
                  list.loadMore();
                }}
              >
                {t('folders.more')}
              </button>
            </li>
          ) : null}
        </ul>
      ) : null}
    </>
  );
}

/** Go to the row before a button that may soon be gone. */
function goBefore(button: HTMLElement): void {
  const row = button.closest('li')?.previousElementSibling;
  row?.querySelector('input')?.focus();
}

function describe(count: number, search: string, hasMore: boolean, t: TFunction): string {
  if (count === 0) {
    return search ? t('folders.nothing', { search }) : t('folders.none');
  }
  return t(hasMore ? 'folders.countMore' : 'folders.count', { count });
}

interface RowProps {
  folder: Folder;
  checked: boolean;
  /** The project whose sessions alone can have it, where that is another one. */
  bound: string;
  onToggle(): void;
}

function Row({ folder, checked, bound, onToggle }: RowProps): JSX.Element {
  const { t } = useTranslation();
  const closed = bound !== '' && !checked;
  const facts = [whose(folder, t), folder.access ? t(`folders.${folder.access}`) : ''];
  return (
    <li>
      <label className="bai-choice">
        <input
          type="checkbox"
          form="backendai-none"
          checked={checked}
          // Still reached with the keyboard, so that its reason is heard.
          aria-disabled={closed}
          onChange={() => {
            if (!closed) {
              onToggle();
            }
          }}
        />
        <span className="bai-choice-body">
          <span className="bai-choice-title">{folder.name}</span>
          <span className="bai-help">
            {[...facts, t('folders.onHost', { host: folder.host })].filter(Boolean).join(' · ')}
          </span>
          {comesByItself(folder) ? (
            <span className="bai-help">{t('folders.byItself')}</span>
          ) : null}
          {bound ? (
            <span className="bai-help">{t('folders.bound', { project: bound })}</span>
          ) : null}
        </span>
      </label>
    </li>
  );
}

function whose(folder: Folder, t: TFunction): string {
  if (folder.ownership_type === 'project') {
    return t('folders.ofProject', { name: folder.project ?? '' });
  }
  return folder.is_owner ? t('folders.yours') : t('folders.from', { name: folder.user ?? '' });
}

import { ChevronRight, Folder as FolderIcon } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { PageLink } from '../../PageLink';
import { explorerAt, waysTo } from '../paths';
import type { Folder } from '../types';

/** The way to this place, each part of which leads back to it. */
export function Breadcrumbs({ folder, path }: { folder: Folder; path: string }): JSX.Element {
  const { t } = useTranslation();
  const ways = [{ name: folder.name, path: '' }, ...waysTo(path)];
  return (
    <nav className="bai-crumbs" aria-label={t('files.way')}>
      <ol>
        {ways.map((way, at) => {
          const last = at === ways.length - 1;
          return (
            <li key={way.path}>
              {at === 0 ? (
                <FolderIcon size={16} aria-hidden />
              ) : (
                <ChevronRight size={14} aria-hidden />
              )}
              {last ? (
                <bdi aria-current="location">{way.name}</bdi>
              ) : (
                <PageLink to={explorerAt(folder.id, way.path)}>
                  <bdi>{way.name}</bdi>
                </PageLink>
              )}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

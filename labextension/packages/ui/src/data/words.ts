/** What is said about folders: whose they are, what may be done in them, how they are. */
import type { TFunction } from 'i18next';
import type { Folder, FolderPermission } from './types';

export const PERMISSIONS: readonly FolderPermission[] = ['ro', 'rw', 'wd'];

export function whose(folder: Folder, t: TFunction): string {
  if (folder.ownership_type === 'project') {
    return t('data.ofProject', { name: folder.project ?? '' });
  }
  return folder.is_owner ? t('data.yours') : t('data.from', { name: folder.user ?? '' });
}

export function permissionOptions(t: TFunction): { value: FolderPermission; text: string }[] {
  return PERMISSIONS.map(value => ({ value, text: t(`data.permissions.${value}`) }));
}

/** A folder that every session of its user has without being asked to. */
export const comesByItself = ({ name }: Pick<Folder, 'name'>): boolean => name.startsWith('.');

/** Where sessions have what is at `path` in a folder. */
export function mountedAt({ name }: Pick<Folder, 'name'>, path: string): string {
  const home = name.toLowerCase() === '.linuxbrew' ? '/home/linuxbrew' : '/home/work';
  return [home, name, path].filter(Boolean).join('/');
}

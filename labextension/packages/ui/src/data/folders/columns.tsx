/** The columns of lists of folders. */
import type { TFunction } from 'i18next';
import { showAmount } from '../../amounts';
import { RelativeTime } from '../../kit/RelativeTime';
import type { ListColumn } from '../../lists';
import { PageLink } from '../../PageLink';
import { explorerAt } from '../paths';
import type { Folder } from '../types';
import { comesByItself, whose } from '../words';
import { FolderStatus } from './FolderStatus';

export function folderColumns(
  t: TFunction,
  language: string,
  trash: boolean
): ListColumn<Folder>[] {
  const size = ({ used_bytes: used }: Folder): string =>
    used ? showAmount('mem', used, language) : '0 B';
  const moment = (iso: string | null): JSX.Element | string =>
    iso ? <RelativeTime iso={iso} language={language} /> : '–';
  const name: ListColumn<Folder> = {
    key: 'name',
    title: t('data.name'),
    sort: 'name',
    head: true,
    cell: folder => (
      <span className="bai-name">
        <PageLink to={explorerAt(folder.id)}>{folder.name}</PageLink>
        {comesByItself(folder) ? <span className="bai-help">{t('data.byItself')}</span> : null}
      </span>
    ),
    csv: folder => folder.name
  };
  const common: ListColumn<Folder>[] = [
    {
      key: 'state',
      title: t('data.fact.status'),
      cell: folder => <FolderStatus folder={folder} />,
      csv: folder => folder.status
    },
    {
      key: 'owner',
      title: t('data.owner'),
      cell: folder => whose(folder, t),
      csv: folder => folder.project ?? folder.user ?? ''
    },
    {
      key: 'size',
      title: t('data.fact.size'),
      sort: 'used_bytes',
      align: 'end',
      cell: size,
      csv: folder => String(folder.used_bytes)
    },
    {
      key: 'host',
      title: t('data.host'),
      cell: folder => folder.host,
      csv: folder => folder.host
    }
  ];
  return trash
    ? [
        name,
        ...common,
        {
          key: 'trashed',
          title: t('data.trashedAt'),
          cell: folder => moment(folder.trashed_at),
          csv: folder => folder.trashed_at ?? ''
        },
        {
          key: 'purge',
          title: t('data.purgeAt'),
          cell: folder => (folder.purge_at ? day(folder.purge_at, language) : '–'),
          csv: folder => folder.purge_at ?? ''
        }
      ]
    : [name, ...common, ...activeColumns(t, moment)];
}

function day(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium' }).format(new Date(iso));
}

function activeColumns(
  t: TFunction,
  moment: (iso: string | null) => JSX.Element | string
): ListColumn<Folder>[] {
  return [
    {
      key: 'access',
      title: t('data.fact.access'),
      cell: folder =>
        folder.access ? t(`data.permissions.${folder.access}`) : t('data.noAccess'),
      csv: folder => folder.access ?? ''
    },
    {
      key: 'usage',
      title: t('data.usageMode'),
      cell: folder => t(`data.usage.${folder.usage_mode}`),
      csv: folder => folder.usage_mode,
      hidden: true
    },
    {
      key: 'mounted',
      title: t('data.fact.mountedBy'),
      align: 'end',
      cell: folder => folder.mounted_by,
      csv: folder => String(folder.mounted_by),
      hidden: true
    },
    {
      key: 'cloneable',
      title: t('data.fact.cloneable'),
      cell: folder => t(folder.cloneable ? 'data.yes' : 'data.no'),
      csv: folder => String(folder.cloneable),
      hidden: true
    },
    {
      key: 'created',
      title: t('data.fact.created'),
      sort: 'created_at',
      cell: folder => moment(folder.created_at),
      csv: folder => folder.created_at
    },
    {
      key: 'used',
      title: t('data.lastUsed'),
      cell: folder => moment(folder.last_used_at),
      csv: folder => folder.last_used_at ?? '',
      hidden: true
    },
    {
      key: 'id',
      title: t('data.fact.id'),
      cell: folder => <code>{folder.id}</code>,
      csv: folder => folder.id,
      hidden: true
    }
  ];
}

import type { Mount, ShownSession } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { DataTable, type Column } from '../kit/DataTable';

/** The folders of a session: where each of them is, and what may be done in it. */
export function Mounts({ session }: { session: ShownSession }): JSX.Element | null {
  const { t } = useTranslation();
  const { mounts } = session;
  if (mounts.length === 0) {
    return null;
  }
  const columns: Column<Mount>[] = [
    {
      key: 'folder',
      title: t('folders.folder'),
      head: true,
      cell: ({ folder_name: name, subpath }) => (subpath ? `${name}/${subpath}` : name)
    },
    {
      key: 'target',
      title: t('folders.target'),
      cell: ({ target }) => <code className="bai-path">{target}</code>
    },
    {
      key: 'access',
      title: t('folders.access'),
      cell: ({ permission, automatic }) => (
        <span className="bai-lines">
          <span>{t(`folders.${permission}`)}</span>
          {automatic ? <span className="bai-reason">{t('folders.byItself')}</span> : null}
        </span>
      )
    },
    { key: 'host', title: t('folders.host'), cell: ({ host }) => host }
  ];
  return (
    <section aria-labelledby="mounts" className="bai-containers">
      <h2 id="mounts">{t('folders.title')}</h2>
      <div className="bai-card bai-table-card">
        <DataTable
          caption={t('folders.caption', { count: mounts.length })}
          columns={columns}
          rows={mounts}
          rowKey={mount => mount.target}
        />
      </div>
    </section>
  );
}

import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Meter } from '../../kit/Meter';
import { RelativeTime } from '../../kit/RelativeTime';
import { FolderStatus } from '../folders/FolderStatus';
import type { Folder } from '../types';
import { mountedAt, whose } from '../words';

export function Details({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const most = Number(folder.max_size);
  const used = showAmount('mem', folder.used_bytes, language);
  const facts: [string, ReactNode][] = [
    ['status', <FolderStatus key="status" folder={folder} />],
    ['owner', whose(folder, t)],
    ['host', folder.host],
    ['usage', t(`data.usage.${folder.usage_mode}`)],
    ['access', folder.access ? t(`data.permissions.${folder.access}`) : t('data.noAccess')],
    ['permission', t(`data.permissions.${folder.permission}`)],
    ['cloneable', t(folder.cloneable ? 'data.yes' : 'data.no')],
    ['size', t('data.sizeOf', { size: used, count: folder.used_files })],
    ['mountedBy', number(folder.mounted_by, language)],
    ['mountedAt', <code key="mounted">{mountedAt(folder, '')}</code>],
    ['created', <RelativeTime key="created" iso={folder.created_at} language={language} />],
    ['id', <code key="id">{folder.id}</code>]
  ];
  return (
    <>
      {most > 0 ? (
        <Meter
          label={t('data.maxSize')}
          text={`${used} / ${showAmount('mem', most, language)}`}
          value={folder.used_bytes}
          max={most}
        />
      ) : null}
      <dl className="bai-facts bai-facts-compact">
        {facts.map(([key, value]) => (
          <div key={key}>
            <dt>{t(`data.fact.${key}`)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

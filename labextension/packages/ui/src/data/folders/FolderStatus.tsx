import { CircleAlert, CircleCheck, LoaderCircle, MonitorPlay, Trash2 } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Badge } from '../../kit/Badge';
import type { Folder } from '../types';

const BUSY = <LoaderCircle size={14} className="bai-spin" />;

/** How a folder is: an icon and a word, and the reason where something went wrong. */
export function FolderStatus({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const { status, status_reason: reason } = folder;
  const [tone, icon] = ((): [Parameters<typeof Badge>[0]['tone'], JSX.Element] => {
    switch (status) {
      case 'ready':
        return ['success', <CircleCheck key="ready" size={14} />];
      case 'mounted':
        return ['progress', <MonitorPlay key="mounted" size={14} />];
      case 'error':
      case 'delete-error':
        return ['error', <CircleAlert key="error" size={14} />];
      case 'delete-pending':
      case 'delete-complete':
        return ['neutral', <Trash2 key="trash" size={14} />];
      default:
        return ['progress', BUSY];
    }
  })();
  return (
    <span className="bai-folder-status">
      <Badge tone={tone} icon={icon}>
        {t(`data.status.${status}`)}
      </Badge>
      {reason ? <span className="bai-help">{reason}</span> : null}
    </span>
  );
}

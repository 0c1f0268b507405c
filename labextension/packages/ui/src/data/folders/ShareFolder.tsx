import { X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { IconButton } from '../../kit/Button';
import { Drawer } from '../../kit/Drawer';
import { SharingPanel } from '../sharing/SharingPanel';
import type { Folder } from '../types';

interface Props {
  folder: Folder;
  onClose(): void;
}

/** With whom a folder is shared, beside the list it stands in. */
export function ShareFolder({ folder, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const title = t('data.shareTitle', { name: folder.name });
  return (
    <Drawer open side="end" label={title} onClose={onClose}>
      <div className="bai-root bai-drawer-body">
        <header className="bai-side-head">
          <h2>{title}</h2>
          <IconButton label={t('app.close')} onClick={onClose}>
            <X size={18} aria-hidden />
          </IconButton>
        </header>
        <SharingPanel folder={folder} />
      </div>
    </Drawer>
  );
}

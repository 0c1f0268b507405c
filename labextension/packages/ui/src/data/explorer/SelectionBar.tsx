import { Copy, Download, FolderInput, Trash2, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { IconButton } from '../../kit/Button';
import { MenuButton } from '../../kit/Menu';
import type { Reason } from '../access';
import { DeedButton } from '../DeedButton';
import type { Packing } from './addresses';

interface Props {
  count: number;
  /** How much the chosen files have in all. */
  size: string;
  why: Record<'take' | 'change' | 'add' | 'remove', Reason | null>;
  onDownload(kind: Packing): void;
  onMove(): void;
  onCopy(): void;
  onTrash(): void;
  onClear(): void;
}

const KINDS: readonly Packing[] = ['zip', 'tar', 'tar.gz'];

/** What can be done with all that is chosen. */
export function SelectionBar(props: Props): JSX.Element {
  const { count, size, why } = props;
  const { t } = useTranslation();
  return (
    <div className="bai-selection" role="region" aria-label={t('files.selection')}>
      <span role="status" className="bai-selection-count">
        {t('files.selected', { count })}
        {size ? ` · ${size}` : ''}
      </span>
      <span className="bai-selection-deeds">
        {why.take ? (
          <DeedButton
            kind="quiet"
            why={why.take}
            icon={<Download size={16} aria-hidden />}
            onClick={noop}
          >
            {t('files.download')}
          </DeedButton>
        ) : (
          <MenuButton
            label={t('files.downloadAs')}
            text={t('files.download')}
            icon={<Download size={16} aria-hidden />}
            entries={KINDS.map(kind => ({
              key: kind,
              text: t('files.archive', { kind }),
              onSelect: () => props.onDownload(kind)
            }))}
          />
        )}
        <DeedButton
          kind="quiet"
          why={why.change}
          icon={<FolderInput size={16} aria-hidden />}
          onClick={props.onMove}
        >
          {t('files.move')}
        </DeedButton>
        <DeedButton
          kind="quiet"
          why={why.add}
          icon={<Copy size={16} aria-hidden />}
          onClick={props.onCopy}
        >
          {t('files.copy')}
        </DeedButton>
        <DeedButton
          kind="quiet"
          why={why.remove}
          icon={<Trash2 size={16} aria-hidden />}
          onClick={props.onTrash}
        >
          {t('files.trash')}
        </DeedButton>
        <IconButton label={t('files.clear')} onClick={props.onClear}>
          <X size={16} aria-hidden />
        </IconButton>
      </span>
    </div>
  );
}

const noop = (): void => undefined;

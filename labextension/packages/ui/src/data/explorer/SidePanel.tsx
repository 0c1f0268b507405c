/** What is known of the folder as a whole, beside what is in it. */
import { X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { IconButton } from '../../kit/Button';
import { Tabs } from '../../kit/Tabs';
import { SharingPanel } from '../sharing/SharingPanel';
import type { Folder } from '../types';
import { Activity } from './Activity';
import { Details } from './Details';
import { TrashPanel } from './TrashPanel';
import { useReturnedFocus } from './useReturnedFocus';

export const SIDES = ['details', 'sharing', 'activity', 'trash'] as const;
export type Side = (typeof SIDES)[number];

interface Props {
  folder: Folder;
  side: Side;
  onSide(side: Side | null): void;
}

export function SidePanel({ folder, side, onSide }: Props): JSX.Element {
  const { t } = useTranslation();
  const panel = useReturnedFocus();
  // Who only manages a folder does not look into it, nor into what was thrown away.
  const sides: readonly Side[] =
    folder.access === null ? SIDES.filter(key => key !== 'trash') : SIDES;
  const shown = sides.includes(side) ? side : 'details';
  return (
    <section ref={panel} className="bai-card bai-side-card" aria-label={t('files.about')}>
      <header className="bai-side-head">
        <h2>{t('files.about')}</h2>
        <IconButton label={t('files.closeSide')} onClick={() => onSide(null)}>
          <X size={18} aria-hidden />
        </IconButton>
      </header>
      <Tabs
        label={t('files.about')}
        value={shown}
        tabs={sides.map(key => ({ key, text: t(`files.side.${key}`) }))}
        onChange={chosen => onSide(chosen)}
      >
        {shown === 'details' ? <Details folder={folder} /> : null}
        {shown === 'sharing' ? <SharingPanel folder={folder} /> : null}
        {shown === 'activity' ? <Activity folder={folder} /> : null}
        {shown === 'trash' ? <TrashPanel folder={folder} /> : null}
      </Tabs>
    </section>
  );
}

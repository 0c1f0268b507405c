/** Where everything begins: what one can do here, and what one did last. */
import { useQuery } from '@tanstack/react-query';
import {
  FolderPlus,
  FolderSearch,
  NotebookPen,
  Server,
  SquareChevronRight,
  SquareTerminal,
  Upload,
  type LucideIcon
} from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Invitations } from '../data/sharing/Invitations';
import { useHost } from '../host';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { isMonitor } from '../pages/page';
import { meQuery } from '../queries';
import { RecentSessions } from '../sessions/RecentSessions';
import { StreamIndicator } from '../sessions/StreamIndicator';

interface Card {
  key: string;
  to: string;
  Icon: LucideIcon;
}

const CARDS: readonly Card[] = [
  { key: 'notebook', to: '/launch', Icon: NotebookPen },
  { key: 'batch', to: '/launch?type=batch', Icon: SquareChevronRight },
  { key: 'folder', to: '/data?new=1', Icon: FolderPlus },
  { key: 'upload', to: '/data?upload=1', Icon: Upload },
  { key: 'browse', to: '/data', Icon: FolderSearch }
];

/** Where there is something to see for those who only look on. */
const VIEWS: readonly Card[] = [
  { key: 'sessions', to: '/sessions', Icon: SquareTerminal },
  { key: 'folders', to: '/data', Icon: FolderSearch },
  { key: 'nodes', to: '/nodes', Icon: Server }
];

export function StartPage(): JSX.Element {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  const cards = me && isMonitor(me) ? VIEWS : CARDS;
  return (
    <>
      <PageHeading
        title={me ? t('start.hello', { name: me.name }) : t('start.title')}
        beside={<StreamIndicator />}
      />
      <Invitations />
      <ul className="bai-cards" aria-label={t('start.cards')}>
        {cards.map(({ key, to, Icon }) => (
          <li key={key}>
            <PageLink to={to} className="bai-action-card">
              <span className="bai-action-icon">
                <Icon size={22} aria-hidden />
              </span>
              <strong>{t(`start.${key}`)}</strong>
              <span className="bai-help">{t(`start.${key}Text`)}</span>
            </PageLink>
          </li>
        ))}
      </ul>
      <RecentSessions />
    </>
  );
}

import type { Session } from '@backendai/api';
import { useTranslation } from 'react-i18next';
import { number } from '../amounts';
import { useHost } from '../host';
import { PageLink } from '../PageLink';
import { isQueued } from '../sessions/status';

interface Props {
  sessions: readonly Session[];
  /** There are more than were asked for. */
  more: boolean;
  /** They are everybody's, not one's own. */
  everybody?: boolean;
}

/** How many of one's sessions there are of each kind, each a way to the list of them. */
export function Counts({ sessions, more, everybody = false }: Props): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const of = (test: (session: Session) => boolean): string =>
    `${number(sessions.filter(test).length, language)}${more ? '+' : ''}`;
  const tiles = [
    { key: 'running', to: '/sessions?state=RUNNING', count: of(s => s.status === 'RUNNING') },
    { key: 'waiting', to: '/sessions?state=PENDING', count: of(s => isQueued(s.status)) },
    {
      key: 'interactive',
      to: '/sessions?type=interactive',
      count: of(s => s.type === 'interactive')
    },
    { key: 'batch', to: '/sessions?type=batch', count: of(s => s.type === 'batch') }
  ];
  return (
    <ul
      className="bai-tiles"
      aria-label={t(everybody ? 'sessions.everybody' : 'dashboard.sessions')}
    >
      {tiles.map(({ key, to, count }) => (
        <li key={key}>
          <PageLink to={to} className="bai-tile">
            <strong>{count}</strong>
            <span>{t(`dashboard.${key}`)}</span>
          </PageLink>
        </li>
      ))}
    </ul>
  );
}

import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { meQuery } from '../queries';
import { usePolling } from '../stream';
import { invitationsQuery } from './queries';

/** How many invitations wait for an answer, beside the way to where they are. */
export function InvitationCount(): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const me = useQuery(meQuery(host)).data?.name;
  const { data = [] } = useQuery(invitationsQuery(host, polling));
  const count = data.filter(each => each.state === 'pending' && each.invitee === me).length;
  return count ? (
    <span className="bai-count" title={t('nav.invitations', { count })}>
      {count}
      <span className="bai-hidden"> {t('nav.invitations', { count })}</span>
    </span>
  ) : null;
}

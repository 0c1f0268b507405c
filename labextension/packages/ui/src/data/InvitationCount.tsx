import { useTranslation } from 'react-i18next';
import { useOffers } from './sharing/useOffers';

/** How many invitations wait for an answer, beside the way to where they are. */
export function InvitationCount(): JSX.Element | null {
  const { t } = useTranslation();
  const count = useOffers().length;
  return count ? (
    <span className="bai-count" title={t('nav.invitations', { count })}>
      {count}
      <span className="bai-hidden"> {t('nav.invitations', { count })}</span>
    </span>
  ) : null;
}

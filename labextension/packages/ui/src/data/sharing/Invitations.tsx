/** What others offer to share: taken or declined. */
import { Check, MailOpen, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Texts } from '../../i18n/Texts';
import { Button } from '../../kit/Button';
import { RelativeTime } from '../../kit/RelativeTime';
import type { Invitation } from '../types';
import { useOffers } from './useOffers';
import { useSharing } from './useSharing';

const AREAS = ['data'] as const;

/** Nothing where nobody offers anything, and no words for it either. */
export function Invitations(): JSX.Element | null {
  const got = useOffers();
  return got.length ? (
    <Texts of={AREAS}>
      <Offers got={got} />
    </Texts>
  ) : null;
}

function Offers({ got }: { got: readonly Invitation[] }): JSX.Element {
  const { t } = useTranslation();
  return (
    <section className="bai-card bai-invitations" aria-label={t('data.invitations')}>
      <h2>
        <MailOpen size={16} aria-hidden /> {t('data.invitations')}
      </h2>
      <ul>
        {got.map(invitation => (
          <Offer key={invitation.id} invitation={invitation} />
        ))}
      </ul>
    </section>
  );
}

function Offer({ invitation }: { invitation: Invitation }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { accept, decline } = useSharing();
  const [busy, setBusy] = useState(false);
  const { folder, inviter, permission } = invitation;
  const answer = (deed: Promise<boolean>): void => {
    setBusy(true);
    void deed.finally(() => setBusy(false));
  };
  return (
    <li>
      <span className="bai-offer">
        <span>
          <strong>{folder}</strong> {t('data.offeredBy', { name: inviter })}
        </span>
        <span className="bai-help">
          {t(`data.permissions.${permission}`)} ·{' '}
          <RelativeTime iso={invitation.created_at} language={language} />
        </span>
      </span>
      <span className="bai-actions">
        <Button
          size="small"
          kind="primary"
          busy={busy}
          icon={<Check size={16} aria-hidden />}
          aria-label={t('data.acceptLabel', { name: folder })}
          onClick={() => answer(accept(invitation))}
        >
          {t('data.accept')}
        </Button>
        <Button
          size="small"
          disabled={busy}
          icon={<X size={16} aria-hidden />}
          aria-label={t('data.declineLabel', { name: folder })}
          onClick={() => answer(decline(invitation))}
        >
          {t('data.decline')}
        </Button>
      </span>
    </li>
  );
}

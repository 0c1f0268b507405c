/** What is shown for an address that leads nowhere, or not for this person. */
import { Compass, Lock } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { EmptyState } from '../kit/States';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';

export function MissingPage(): JSX.Element {
  const { t } = useTranslation();
  return (
    <>
      <PageHeading title={t('state.notFound')} />
      <EmptyState
        icon={<Compass size={32} />}
        title={t('state.notFoundTitle')}
        text={t('state.notFoundText')}
        action={<PageLink to="/">{t('state.toStart')}</PageLink>}
      />
    </>
  );
}

/** Says whom a page is not for: monitors, or whoever is no administrator. */
export function ForbiddenPage({ toMonitors = false }: { toMonitors?: boolean }): JSX.Element {
  const { t } = useTranslation();
  return (
    <>
      <PageHeading title={t('state.forbidden')} />
      <EmptyState
        icon={<Lock size={32} />}
        title={t(toMonitors ? 'state.forbiddenMonitor' : 'state.forbiddenTitle')}
        text={t('state.forbiddenText')}
        action={<PageLink to="/">{t('state.toStart')}</PageLink>}
      />
    </>
  );
}

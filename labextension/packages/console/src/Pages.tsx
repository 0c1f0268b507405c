import { PageHeading, SessionsPage } from '@backendai/ui';
import { Skeleton } from '@backendai/ui/kit';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { Link, Route, Switch } from 'wouter';

const AgentsPage = lazy(async () => ({
  default: (await import('@backendai/ui/agents')).AgentsPage
}));
const SessionPage = lazy(async () => ({
  default: (await import('@backendai/ui/session')).SessionPage
}));

export function Pages(): JSX.Element {
  const { t } = useTranslation();
  return (
    <Suspense fallback={<Skeleton rows={4} label={t('state.loading')} />}>
      <Switch>
        <Route path="/">
          <SessionsPage />
        </Route>
        <Route path="/sessions/:id">
          {({ id }) => (
            <SessionPage key={id} id={id} back={<Link href="/">{t('session.back')}</Link>} />
          )}
        </Route>
        <Route path="/nodes">
          <AgentsPage />
        </Route>
        <Route>
          <PageHeading title={t('state.notFound')} />
          <Link href="/">{t('session.back')}</Link>
        </Route>
      </Switch>
    </Suspense>
  );
}

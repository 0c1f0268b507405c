import {
  changeLanguage,
  createQueryClient,
  HostProvider,
  LiveSessions,
  type Host,
  type Language
} from '@backendai/ui';
import { useColorMode, useToasts } from '@backendai/ui/kit';
import { QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Router, useLocation } from 'wouter';
import { api, hub, openEvents, prefix } from './host';
import { rememberLanguage } from './language';
import { Pages } from './Pages';
import { Shell } from './Shell';

export function App(): JSX.Element {
  const [client] = useState(createQueryClient);
  return (
    <QueryClientProvider client={client}>
      <Router base={prefix.replace(/\/$/, '')}>
        <HostedPages />
      </Router>
    </QueryClientProvider>
  );
}

function HostedPages(): JSX.Element {
  const { t, i18n } = useTranslation();
  const { mode } = useColorMode();
  const { notify, toasts } = useToasts(t('app.close'));
  const [, navigate] = useLocation();
  const language = i18n.language as Language;
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const host = useMemo<Host>(
    () => ({
      kind: 'console',
      api,
      openEvents,
      notify,
      sessionHref: id => `${prefix}sessions/${id}`,
      navigate: href => navigate(href.slice(prefix.length - 1)),
      launchHref: server => (server ? `${hub}spawn/${server}` : `${hub}spawn`),
      login: () => window.location.reload(),
      language,
      colorMode: mode,
      visible: true
    }),
    [notify, navigate, language, mode]
  );
  const choose = (chosen: Language): void => {
    rememberLanguage(chosen);
    void changeLanguage(i18n, chosen);
  };
  return (
    <HostProvider value={host}>
      <LiveSessions>
        <Shell onLanguage={choose}>
          <Pages />
        </Shell>
      </LiveSessions>
      {toasts}
    </HostProvider>
  );
}

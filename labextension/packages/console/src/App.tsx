import {
  Absences,
  changeLanguage,
  createQueryClient,
  Endings,
  HostProvider,
  leaveThen,
  LiveSessions,
  numbered,
  Pages,
  Uploads,
  type Host,
  type Language
} from '@backendai/ui';
import { useColorMode, useToasts } from '@backendai/ui/kit';
import { QueryClientProvider } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Router, useLocation } from 'wouter';
import { addressOf, api, hub, prefix, stream, writeHeaders } from './host';
import { rememberLanguage } from './language';
import { Shell } from './Shell';

export function App(): JSX.Element {
  const [client] = useState(createQueryClient);
  return (
    <QueryClientProvider client={client}>
      <Router
        base={prefix.replace(/\/$/, '')}
        aroundNav={(navigate, to, options) =>
          leaveThen(() => navigate(to, { ...options, state: numbered(options?.replace) }))
        }
      >
        <HostedPages />
      </Router>
    </QueryClientProvider>
  );
}

function HostedPages(): JSX.Element {
  const { t, i18n } = useTranslation();
  const { mode } = useColorMode();
  const notices = useToasts({ close: t('app.close'), undo: t('notices.undo') });
  const { notify, toasts } = notices;
  const [, navigate] = useLocation();
  const language = i18n.language as Language;
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choose = useCallback(
    (chosen: Language): void => {
      rememberLanguage(chosen);
      void changeLanguage(i18n, chosen);
    },
    [i18n]
  );
  const host = useMemo<Host>(
    () => ({
      kind: 'console',
      api,
      listen: stream.listen,
      addressOf,
      writeHeaders,
      notify,
      hrefOf: path => `${prefix}${path.slice(1)}`,
      open: path => navigate(path),
      launchHref: server => (server ? `${hub}spawn/${server}` : `${hub}spawn`),
      retitle: title => {
        document.title = title;
      },
      login: () => window.location.reload(),
      language,
      setLanguage: choose,
      colorMode: mode,
      visible: true
    }),
    [notify, navigate, language, mode, choose]
  );
  return (
    <HostProvider value={host}>
      <LiveSessions>
        <Shell onLanguage={choose} notices={notices}>
          <Pages />
        </Shell>
      </LiveSessions>
      <Absences />
      <Endings />
      <Uploads />
      {toasts}
    </HostProvider>
  );
}

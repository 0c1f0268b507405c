/** The panel's page: the console's list of sessions, with JupyterLab as its host. */
import { createApi } from '@backendai/api';
import {
  changeLanguage,
  createQueryClient,
  createTranslator,
  HostProvider,
  LiveSessions,
  pickLanguage,
  SessionsPage,
  type ColorMode,
  type Host
} from '@backendai/ui';
import { KitTheme } from '@backendai/ui/kit';
import kitStyles from '@backendai/ui/styles/kit.css?inline';
import tokens from '@backendai/ui/styles/tokens-lab.css?inline';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import { QueryClientProvider } from '@tanstack/react-query';
import type { i18n } from 'i18next';
import { useEffect, useMemo, useState } from 'react';
import { I18nextProvider } from 'react-i18next';
import { fetchPlatform, platformUrl } from './platform';

interface Props {
  settings: ServerConnection.ISettings;
  visible: boolean;
  colorMode: ColorMode;
  language: string;
}

for (const text of [tokens, kitStyles]) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

export default function Page(props: Props): JSX.Element | null {
  const [client] = useState(createQueryClient);
  const translator = useTranslator(props.language);
  const host = useLabHost(props);
  if (!translator) {
    return null;
  }
  return (
    <I18nextProvider i18n={translator}>
      <KitTheme modeKey={null} mode={props.colorMode}>
        <QueryClientProvider client={client}>
          <HostProvider value={host}>
            <LiveSessions>
              <div className="bai-root bai-panel" lang={host.language}>
                <SessionsPage />
              </div>
            </LiveSessions>
          </HostProvider>
        </QueryClientProvider>
      </KitTheme>
    </I18nextProvider>
  );
}

function useTranslator(tag: string): i18n | null {
  const [translator, setTranslator] = useState<i18n | null>(null);
  useEffect(() => {
    const language = pickLanguage([tag]);
    if (translator) {
      void changeLanguage(translator, language);
    } else {
      void createTranslator(language).then(setTranslator);
    }
  }, [tag, translator]);
  return translator;
}

function useLabHost({ settings, visible, colorMode, language }: Props): Host {
  const api = useMemo(
    () => createApi(request => fetchPlatform(settings, request), platformUrl(settings)),
    [settings]
  );
  return useMemo<Host>(
    () => ({
      kind: 'lab',
      api,
      openEvents: (after, signal) => {
        const query = after ? `?${new URLSearchParams({ after }).toString()}` : '';
        const url = `${platformUrl(settings)}/api/events${query}`;
        return fetchPlatform(settings, new Request(url, { signal }));
      },
      notify: (level, text) => {
        Notification.emit(text, level, { autoClose: 6000 });
      },
      sessionHref: () => null,
      navigate: href => {
        window.open(href, '_blank', 'noopener');
      },
      launchHref: server => hubPage(server ? `spawn/${server}` : 'spawn'),
      login: () => window.location.reload(),
      language: pickLanguage([language]),
      colorMode,
      visible
    }),
    [api, settings, language, colorMode, visible]
  );
}

function hubPage(page: string): string {
  const prefix = PageConfig.getOption('hubPrefix') || '/hub/';
  return `${PageConfig.getOption('hubHost')}${prefix}${page}`;
}

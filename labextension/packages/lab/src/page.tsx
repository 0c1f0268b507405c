/** Draws our pages and panels, with JupyterLab as their host. */
import { createApi, type Api } from '@backendai/api';
import {
  Absences,
  changeLanguage,
  createQueryClient,
  createTranslator,
  DataPanel,
  HostProvider,
  leaveThen,
  LiveSessions,
  Pages,
  pickLanguage,
  SessionsPanel,
  Texts,
  Uploads,
  type Host
} from '@backendai/ui';
import { KitTheme } from '@backendai/ui/kit';
import styles from '@backendai/ui/styles/pages.css?inline';
import tokens from '@backendai/ui/styles/tokens-lab.css?inline';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { QueryClientProvider } from '@tanstack/react-query';
import type { i18n } from 'i18next';
import { useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { I18nextProvider, useTranslation } from 'react-i18next';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { fetchPlatform, platformUrl, writeHeaders } from './platform';
import type { Kind, Place, Stage } from './stage';

for (const text of [tokens, styles]) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

const PANELS: Record<Exclude<Kind, 'page'>, () => JSX.Element> = {
  sessions: SessionsPanel,
  data: DataPanel
};

/** One tree for every widget: one cache, one event stream, whatever is shown. */
export function start(stage: Stage): void {
  createRoot(document.createElement('div')).render(<Everywhere stage={stage} />);
}

function Everywhere({ stage }: { stage: Stage }): JSX.Element | null {
  const scene = useSyncExternalStore(stage.subscribe, () => stage.scene);
  const [client] = useState(createQueryClient);
  const translator = useTranslator(scene.language);
  const host = useLabHost(stage, translator?.t('notices.undo') ?? '');
  if (!translator) {
    return null;
  }
  return (
    <I18nextProvider i18n={translator}>
      <KitTheme modeKey={null} mode={scene.colorMode}>
        <QueryClientProvider client={client}>
          <HostProvider value={host}>
            <LiveSessions>
              <Absences />
              {scene.places.map(place =>
                createPortal(
                  <Drawn key={place.id} place={place} host={host} stage={stage} />,
                  place.node,
                  place.id
                )
              )}
              {createPortal(
                <div className="bai-root" lang={host.language}>
                  <Uploads />
                </div>,
                document.body
              )}
            </LiveSessions>
          </HostProvider>
        </QueryClientProvider>
      </KitTheme>
    </I18nextProvider>
  );
}

/** A tab's own address, as a browser's tab has one. */
const begin = (path: string) => memoryLocation({ path });

interface DrawnProps {
  place: Place;
  host: Host;
  stage: Stage;
}

function Drawn({ place, host, stage }: DrawnProps): JSX.Element {
  const { t } = useTranslation();
  const loading = t('state.loading');
  const visible = stage.scene.visible.has(place);
  const [location] = useState(() => begin(place.path));
  useEffect(() => {
    place.leave = go => leaveThen(go, location.hook);
  }, [place, location]);
  const own = useMemo<Host>(
    () => ({
      ...host,
      visible,
      // What nobody looks at is not asked for: it keeps the name that it had. So does
      // what loads, which nobody may wait for.
      retitle: title => (visible && title !== loading ? place.retitle(title) : undefined),
      open: path =>
        place.kind === 'page'
          ? leaveThen(() => location.navigate(path), location.hook)
          : stage.open(path)
    }),
    [host, loading, visible, place, location, stage]
  );
  const shown =
    place.kind === 'page' ? (
      <Router
        hook={location.hook}
        searchHook={location.searchHook}
        aroundNav={(navigate, to, options) =>
          leaveThen(() => navigate(to, options), location.hook)
        }
      >
        <Remembered place={place} hooks={location}>
          <Pages />
        </Remembered>
      </Router>
    ) : (
      <Panel kind={place.kind} />
    );
  return (
    <HostProvider value={own}>
      <div
        className={`bai-root ${place.kind === 'page' ? 'bai-tab' : 'bai-panel'}`}
        lang={host.language}
      >
        {shown}
      </div>
    </HostProvider>
  );
}

const PANEL_AREAS = ['work', 'data', 'launch'] as const;

function Panel({ kind }: { kind: Exclude<Kind, 'page'> }): JSX.Element {
  const Component = PANELS[kind];
  return (
    <Texts of={PANEL_AREAS}>
      <Component />
    </Texts>
  );
}

interface RememberedProps {
  place: Place;
  hooks: ReturnType<typeof begin>;
  children: ReactNode;
}

/** Tell JupyterLab which page a tab shows, for when it is opened again. */
function Remembered({ place, hooks, children }: RememberedProps): ReactNode {
  const [path] = hooks.hook();
  const search = hooks.searchHook();
  useEffect(() => place.moved(search ? `${path}?${search}` : path), [place, path, search]);
  return children;
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

function useLabHost(stage: Stage, undoWord: string): Host {
  const { settings, scene } = stage;
  const api = useMemo<Api>(
    () => createApi(request => fetchPlatform(settings, request), platformUrl(settings)),
    [settings]
  );
  const visible = scene.visible.size > 0;
  const { colorMode, language } = scene;
  return useMemo<Host>(
    () => ({
      kind: 'lab',
      api,
      listen: stage.stream.listen,
      notify: (level, text, undo) => {
        const actions = undo ? [{ label: undoWord, callback: undo }] : [];
        Notification.emit(text, level, { autoClose: 6000, actions });
      },
      addressOf: path => `${platformUrl(settings)}${path}`,
      writeHeaders: () => writeHeaders(settings),
      hrefOf: () => null,
      open: stage.open,
      retitle: () => undefined,
      launchHref: server => hubPage(server ? `spawn/${server}` : 'spawn'),
      login: () => window.location.reload(),
      language: pickLanguage([language]),
      colorMode,
      visible
    }),
    [api, settings, stage, language, colorMode, visible, undoWord]
  );
}

function hubPage(page: string): string {
  const prefix = PageConfig.getOption('hubPrefix') || '/hub/';
  return `${PageConfig.getOption('hubHost')}${prefix}${page}`;
}

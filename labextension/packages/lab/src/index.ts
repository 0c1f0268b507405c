/**
 * Backend.AI in JupyterLab: a panel of sessions, and this session's name below.
 *
 * Only what is needed at the start is here; the panel's page loads when it is opened.
 */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IThemeManager } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { findThisSession } from './platform';
import { SessionsPanel } from './widget';

const PLUGIN_ID = '@backendai/lab:plugin';

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Shows the sessions of a Backend.AI cluster.',
  autoStart: true,
  optional: [ILayoutRestorer, IStatusBar, IThemeManager, ITranslator, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
    settings: ISettingRegistry | null
  ) => {
    const panel = new SessionsPanel(app.serviceManager.serverSettings);
    app.shell.add(panel, 'left', { rank: 650 });
    restorer?.add(panel, panel.id);
    followTheme(panel, themes);
    void followLanguage(panel, translator, settings);
    if (statusBar) {
      void app.restored.then(() => showThisSession(app, statusBar));
    }
  }
};

function followTheme(panel: SessionsPanel, themes: IThemeManager | null): void {
  const follow = (): void => {
    const theme = themes?.theme;
    panel.colorMode = !themes || !theme || themes.isLight(theme) ? 'light' : 'dark';
  };
  themes?.themeChanged.connect(follow);
  follow();
}

async function followLanguage(
  panel: SessionsPanel,
  translator: ITranslator | null,
  registry: ISettingRegistry | null
): Promise<void> {
  // JupyterLab has no Thai of its own, so the panel can differ from it.
  const own = translator?.languageCode ?? 'en';
  panel.language = own;
  const settings = await registry?.load(PLUGIN_ID);
  const follow = (): void => {
    const chosen = settings?.get('language').composite;
    panel.language = typeof chosen === 'string' && chosen !== 'auto' ? chosen : own;
  };
  settings?.changed.connect(follow);
  follow();
}

async function showThisSession(app: JupyterFrontEnd, statusBar: IStatusBar): Promise<void> {
  const session = await findThisSession(app.serviceManager.serverSettings);
  if (!session) {
    return; // JupyterLab runs somewhere else, or the platform does not answer
  }
  const item = new Widget();
  item.node.textContent = session.name;
  item.node.title = `Backend.AI: ${session.name}, ${session.image}`;
  item.addClass('jp-StatusBar-TextItem');
  statusBar.registerStatusItem(`${PLUGIN_ID}:session`, { item, align: 'left', rank: 90 });
}

export default plugin;

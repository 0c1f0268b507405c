/** The plugin. It loads with JupyterLab, so it only says what there is. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  IThemeManager,
  MainAreaWidget,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';
import { askBeforeClosing } from './closing';
import { News } from './news';
import { listRunning } from './platform';
import { dataIcon, Place, sessionsIcon, Stage } from './stage';
import { StatusItem } from './status';
import { say, speak, type Word } from './words';

const PLUGIN_ID = '@backendai/lab:plugin';
const OPEN = 'backendai:open';

/** Commands of the palette and the launcher: what opens which page. */
const PAGES: readonly { id: string; word: Word; path: string; hint?: Word; rank?: number }[] = [
  { id: 'backendai:launch', word: 'launch', path: '/launch', hint: 'launchHint', rank: 1 },
  { id: 'backendai:data', word: 'openData', path: '/data', hint: 'dataHint', rank: 2 },
  { id: 'backendai:sessions', word: 'openSessions', path: '/sessions' },
  { id: 'backendai:dashboard', word: 'openDashboard', path: '/dashboard' },
  { id: 'backendai:settings', word: 'openSettings', path: '/settings' }
];

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Sessions and folders of a Backend.AI cluster.',
  autoStart: true,
  optional: [
    ILayoutRestorer,
    IStatusBar,
    IThemeManager,
    ITranslator,
    ISettingRegistry,
    ICommandPalette,
    ILauncher
  ],
  activate: (
    app: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null
  ) => {
    const stage = new Stage(
      app.serviceManager.serverSettings,
      path => void app.commands.execute(OPEN, { path }),
      again => {
        const actions = [{ label: say('retry'), callback: again }];
        Notification.emit(say('notLoaded'), 'error', { autoClose: false, actions });
      }
    );
    addTabs(app, stage, restorer);
    const panels = addPanels(app, stage, restorer);
    addCommands(app, palette, launcher);
    followTheme(stage, themes);
    const status = new StatusItem(() => app.shell.activateById('backendai-sessions'));
    const renamed = (): void => {
      panels.forEach(({ panel, word }) => {
        panel.title.caption = say(word);
      });
      status.rename();
      app.commands.notifyCommandChanged();
    };
    void followLanguage(stage, translator, registry, renamed);
    void app.restored.then(() => followSessions(stage, status, statusBar));
  }
};

function addTabs(app: JupyterFrontEnd, stage: Stage, restorer: ILayoutRestorer | null): void {
  const tracker = new WidgetTracker<MainAreaWidget<Place>>({ namespace: 'backendai' });
  const pathOf = (tab: MainAreaWidget<Place>): string => tab.content.path;
  const findFree = (number = 1): string => {
    const id = `backendai-tab-${number}`;
    return tracker.find(tab => tab.id === id) ? findFree(number + 1) : id;
  };
  app.commands.addCommand(OPEN, {
    label: () => say('category'),
    execute: args => {
      const path = typeof args.path === 'string' ? args.path : '/';
      const title = typeof args.title === 'string' ? args.title : say('category');
      const id = typeof args.id === 'string' ? args.id : findFree();
      const known = tracker.find(each => pathOf(each) === path);
      const tab = known ?? makeTab(stage, { id, path, title });
      if (!tracker.has(tab)) {
        tab.content.changed.connect(() => void tracker.save(tab));
        void tracker.add(tab);
      }
      if (!tab.isAttached) {
        app.shell.add(tab, 'main');
      }
      app.shell.activateById(tab.id);
    }
  });
  if (restorer) {
    void restorer.restore(tracker, {
      command: OPEN,
      // What it shows is asked for, and named, when somebody looks at it again.
      args: tab => ({ id: tab.id, path: pathOf(tab), title: tab.content.title.label }),
      // Not the path, which changes: the layout knows tabs by their names.
      name: tab => tab.id
    });
  }
}

interface Tab {
  id: string;
  path: string;
  title: string;
}

function makeTab(stage: Stage, { id, path, title }: Tab): MainAreaWidget<Place> {
  const place = new Place(stage, 'page', path);
  const tab = new MainAreaWidget({ content: place });
  askBeforeClosing(tab, go => place.leave(go));
  tab.id = id;
  tab.title.icon = path.startsWith('/data') ? dataIcon : sessionsIcon;
  tab.title.closable = true;
  tab.toolbar.hide();
  tab.content.title.label = title;
  return tab;
}

interface Panel {
  panel: Place;
  word: Word;
}

function addPanels(
  app: JupyterFrontEnd,
  stage: Stage,
  restorer: ILayoutRestorer | null
): readonly Panel[] {
  const panels = [
    { panel: new Place(stage, 'sessions', '/sessions'), word: 'sessionsPanel' },
    { panel: new Place(stage, 'data', '/data'), word: 'dataPanel' }
  ] as const;
  panels.forEach(({ panel, word }, index) => {
    panel.id = `backendai-${panel.kind}`;
    panel.title.icon = panel.kind === 'data' ? dataIcon : sessionsIcon;
    panel.title.caption = say(word);
    app.shell.add(panel, 'left', { rank: 650 + index });
    restorer?.add(panel, panel.id);
  });
  return panels;
}

function addCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  for (const { id, word, path, hint, rank } of PAGES) {
    app.commands.addCommand(id, {
      label: () => say(word),
      caption: () => say(hint ?? word),
      icon: path.startsWith('/data') ? dataIcon : sessionsIcon,
      execute: () => app.commands.execute(OPEN, { path })
    });
    palette?.addItem({ command: id, category: 'Backend.AI' });
    if (rank !== undefined) {
      launcher?.add({ command: id, category: 'Backend.AI', rank });
    }
  }
}

function followTheme(stage: Stage, themes: IThemeManager | null): void {
  const follow = (): void => {
    const theme = themes?.theme;
    stage.set({ colorMode: !themes || !theme || themes.isLight(theme) ? 'light' : 'dark' });
  };
  themes?.themeChanged.connect(follow);
  follow();
}

async function followLanguage(
  stage: Stage,
  translator: ITranslator | null,
  registry: ISettingRegistry | null,
  renamed: () => void
): Promise<void> {
  // JupyterLab has no Thai of its own, so our pages can differ from it.
  const own = translator?.languageCode ?? 'en';
  const adopt = (language: string): void => {
    stage.set({ language });
    void speak(language).then(renamed);
  };
  adopt(own);
  const settings = await registry?.load(PLUGIN_ID);
  const follow = (): void => {
    const chosen = settings?.get('language').composite;
    adopt(typeof chosen === 'string' && chosen !== 'auto' ? chosen : own);
  };
  if (settings) {
    settings.changed.connect(follow);
    follow();
  }
}

/** Tell of the person's sessions: in the status bar, and when one of them ends. */
function followSessions(stage: Stage, status: StatusItem, statusBar: IStatusBar | null): void {
  const { settings, stream } = stage;
  // Browsers open few connections to one place: whoever has many of these has one in sight.
  const rest = (): void => stream.rest(document.hidden);
  document.addEventListener('visibilitychange', rest);
  rest();
  const path = new URL(settings.baseUrl).pathname;
  new News(
    stream,
    { path, list: () => listRunning(settings) },
    {
      show: found => {
        status.tell(found);
        if (!status.parent) {
          const place = { item: status, align: 'left', rank: 90 } as const;
          statusBar?.registerStatusItem(`${PLUGIN_ID}:session`, place);
        }
      },
      tell: ended => {
        void import('./notices').then(({ tellEnds }) => tellEnds(ended, stage.scene.language));
      }
    }
  );
}

export default plugin;

import type { ServerConnection } from '@jupyterlab/services';
import { LabIcon, ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { lazy, Suspense, type ReactElement } from 'react';

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
<path class="jp-icon3 jp-icon-selectable" fill="none" stroke="#616161" stroke-width="2.2"
stroke-linecap="round" stroke-linejoin="round" d="M2.5 12.8h4L9.3 5l4.4 14 3-7.2h4.8"/></svg>`;

const Page = lazy(() => import('./page'));

/** The sidebar's panel. It costs nothing until it is seen for the first time. */
export class SessionsPanel extends ReactWidget {
  private seen = false;
  private shown = false;
  private mode: 'light' | 'dark' = 'light';
  private tag = 'en';

  constructor(private readonly settings: ServerConnection.ISettings) {
    super();
    this.id = 'backendai-sessions';
    this.title.caption = 'Backend.AI';
    this.title.icon = new LabIcon({ name: 'backendai:sessions', svgstr: ICON });
    // Typing in our fields must not start JupyterLab's commands.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this.node.style.overflow = 'auto';
  }

  set colorMode(mode: 'light' | 'dark') {
    this.mode = mode;
    this.update();
  }

  set language(tag: string) {
    this.tag = tag;
    this.update();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.seen = true;
    this.shown = true;
    this.update();
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.shown = false;
    this.update();
  }

  protected override render(): ReactElement | null {
    if (!this.seen) {
      return null;
    }
    return (
      <Suspense fallback={null}>
        <Page
          settings={this.settings}
          visible={this.shown}
          colorMode={this.mode}
          language={this.tag}
        />
      </Suspense>
    );
  }
}

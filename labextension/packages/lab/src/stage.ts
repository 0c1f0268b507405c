/**
 * Where JupyterLab shows our pages, kept apart from the pages themselves.
 *
 * Everything here is loaded with JupyterLab, and small; what draws is loaded when the
 * first of these widgets is shown.
 */
import { SharedStream } from '@backendai/api/shared';
import type { ServerConnection } from '@jupyterlab/services';
import { LabIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import type { Leave } from './closing';
import { openEvents } from './platform';
import { spareTyping } from './shortcuts';
import { whenWanted } from './wanted';

const drawn = (name: string, path: string): LabIcon =>
  new LabIcon({
    name: `backendai:${name}`,
    // JupyterLab colours what has a colour of its own: without `fill` on the path, only lines.
    svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16" fill="none">
<path class="jp-icon3 jp-icon-selectable" stroke="#616161" stroke-width="2.2"
stroke-linecap="round" stroke-linejoin="round" d="${path}"/></svg>`
  });

export const sessionsIcon = drawn('sessions', 'M2.5 12.8h4L9.3 5l4.4 14 3-7.2h4.8');
export const dataIcon = drawn('data', 'M3 18.5v-13h6l2.2 2.6H21v10.4zM8 15.2h8M12 11.6v3.6');

export type Kind = 'sessions' | 'data' | 'page';

/** A widget of JupyterLab's in which one of our pages or panels is drawn. */
export class Place extends Widget {
  /** Emitted when another page is shown, or the page has another name. */
  readonly changed = new Signal<this, void>(this);
  /** Asks before what is shown is left; what draws knows what would be lost. */
  leave: Leave = go => go();

  constructor(
    private readonly stage: Stage,
    readonly kind: Kind,
    public path: string
  ) {
    super();
    spareTyping(this.node);
    this.node.style.overflow = 'auto';
  }

  /** What is shown is called this. */
  retitle(title: string): void {
    if (this.kind === 'page' && this.title.label !== title) {
      this.title.label = title;
      this.changed.emit();
    }
  }

  /** The page shown is at another address now. */
  moved(path: string): void {
    if (this.path !== path) {
      this.path = path;
      this.changed.emit();
    }
  }

  override dispose(): void {
    this.stage.remove(this);
    super.dispose();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.stage.show(this);
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.stage.hide(this);
  }

  /** A widget that is added where it can be seen is never told that it is shown. */
  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      this.stage.show(this);
    }
  }
}

export interface Scene {
  /** Every place that has been seen, in the order in which it was. */
  places: readonly Place[];
  /** Those that can be seen now. */
  visible: ReadonlySet<Place>;
  colorMode: 'light' | 'dark';
  language: string;
}

/** What is to be drawn; changed by JupyterLab, watched by what draws. */
export class Stage {
  scene: Scene = { places: [], visible: new Set(), colorMode: 'light', language: 'en' };
  /** What happens, for everything of ours in this window. */
  readonly stream: SharedStream;
  private readonly listeners = new Set<() => void>();
  private readonly draw;

  constructor(
    readonly settings: ServerConnection.ISettings,
    /** Opens a page in a tab of its own, or shows the tab that has it. */
    readonly open: (path: string) => void,
    /** Tells that nothing can be drawn yet, and how to try it again. */
    failed: (again: () => void) => void
  ) {
    this.draw = whenWanted(async () => (await import('./page')).start(this), failed);
    this.stream = new SharedStream(openEvents.bind(null, settings), window);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  show(place: Place): void {
    const { places, visible } = this.scene;
    this.set({
      places: places.includes(place) ? places : [...places, place],
      visible: new Set([...visible, place])
    });
    this.draw();
  }

  hide(place: Place): void {
    this.set({ visible: new Set([...this.scene.visible].filter(other => other !== place)) });
  }

  remove(place: Place): void {
    this.hide(place);
    this.set({ places: this.scene.places.filter(other => other !== place) });
  }

  set(changes: Partial<Scene>): void {
    this.scene = { ...this.scene, ...changes };
    this.listeners.forEach(listener => listener());
  }
}

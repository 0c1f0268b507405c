/** What the status bar says: which session this is, and how many run. */
import { Widget } from '@lumino/widgets';
import type { Surroundings } from './news';
import { say } from './words';

export class StatusItem extends Widget {
  private readonly button = document.createElement('button');
  private found: Surroundings | null = null;

  constructor(onPress: () => void) {
    super();
    this.addClass('jp-StatusBar-TextItem');
    this.button.type = 'button';
    // Our styles come with the first page that is opened; this stands there before.
    Object.assign(this.button.style, {
      border: 'none',
      padding: '0',
      background: 'none',
      color: 'inherit',
      font: 'inherit',
      cursor: 'pointer'
    });
    this.button.addEventListener('click', onPress);
    this.node.append(this.button);
  }

  tell(found: Surroundings): void {
    this.found = found;
    this.rename();
  }

  /** Say it again, in the language of now. */
  rename(): void {
    if (this.found) {
      const { here, count } = this.found;
      this.button.textContent = say('status', { name: here.name, count });
      this.button.title = say('statusHint', { name: here.name, image: here.image });
    }
  }
}

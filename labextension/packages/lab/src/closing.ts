/** Tabs with changes that are not saved: nobody closes them by accident. */
import { MessageLoop, type Message } from '@lumino/messaging';
import type { Widget } from '@lumino/widgets';

/** Calls what it is given, after asking where something would be lost. */
export type Leave = (go: () => void) => void;

/** Have *leave* called before *tab* is closed, by whoever closes it. */
export function askBeforeClosing(tab: Widget, leave: Leave): void {
  let leaves = false;
  const close = (): void => {
    leaves = true;
    tab.close();
  };
  MessageLoop.installMessageHook(tab, (_, message: Message) => {
    if (message.type !== 'close-request' || leaves) {
      return true;
    }
    leave(close);
    return false;
  });
}

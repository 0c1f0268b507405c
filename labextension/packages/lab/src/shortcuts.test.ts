// @vitest-environment happy-dom
import { CommandRegistry } from '@lumino/commands';
import { expect, test } from 'vitest';
import { spareTyping } from './shortcuts';

/** How often a command was started by pressing its key in each of these in turn. */
function press(...within: string[]): number[] {
  let started = 0;
  const commands = new CommandRegistry();
  commands.addCommand('palette', { execute: () => (started += 1) });
  commands.addKeyBinding({ command: 'palette', keys: ['C'], selector: 'body' });
  const node = document.createElement('div');
  node.tabIndex = -1;
  node.innerHTML = `<textarea></textarea><input id="name"><input id="box" type="checkbox">
    <select></select><button>Go</button>`;
  document.body.append(node);
  spareTyping(node);
  document.body.onkeydown = event => commands.processKeydownEvent(event);
  return within.map(selector => {
    const before = started;
    const target = selector ? node.querySelector<HTMLElement>(selector) : node;
    target?.focus();
    const event = new KeyboardEvent('keydown', { key: 'c', keyCode: 67, bubbles: true });
    target?.dispatchEvent(event);
    return started - before;
  });
}

test('commands are within reach of the page, and of what is pressed on it', () => {
  expect(press('', 'button', '#box')).toEqual([1, 1, 1]);
});

test('what is typed starts none, and what is pressed after it does', () => {
  expect(press('textarea', '#name', 'select', 'button')).toEqual([0, 0, 0, 1]);
});

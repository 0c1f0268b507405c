// @vitest-environment happy-dom
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { expect, test } from 'vitest';
import { askBeforeClosing, type Leave } from './closing';

/** A tab that JupyterLab has, and what is asked before it closes. */
function open(leave: Leave): Widget {
  const tab = new Widget();
  Widget.attach(tab, document.body);
  askBeforeClosing(tab, leave);
  return tab;
}

test('a tab in which nothing would be lost closes', () => {
  const tab = open(go => go());

  tab.close();

  expect(tab.isAttached).toBe(false);
});

test('a tab stays until whoever closes it has said that they leave', () => {
  const asked: (() => void)[] = [];
  const tab = open(go => asked.push(go));

  tab.close();
  expect(tab.isAttached).toBe(true);
  tab.close(); // "Stay here", and once more
  expect(tab.isAttached).toBe(true);
  asked.at(-1)?.();

  expect(asked).toHaveLength(2);
  expect(tab.isAttached).toBe(false);
});

test('nothing but closing is asked about', () => {
  let asked = 0;
  const tab = open(() => (asked += 1));

  MessageLoop.sendMessage(tab, Widget.Msg.FitRequest);
  tab.hide();

  expect(asked).toBe(0);
});

import { expect, test } from 'vitest';
import { findLines, stripColours } from './loglines';

const escape = String.fromCharCode(27);

test('a log is read without its colours and titles', () => {
  const text = `${escape}[1;31mred${escape}[0m plain${escape}]0;title${String.fromCharCode(7)}!`;

  expect(stripColours(text)).toBe('red plain!');
});

test('what overwrites its line is the line', () => {
  expect(stripColours('10%\r50%\r100%\nnext\r\n')).toBe('100%\nnext\n');
});

test('tabs stay', () => {
  expect(stripColours('a\tb')).toBe('a\tb');
});

test('lines are found whatever their letters are', () => {
  expect(findLines(['Epoch 1', 'loss 2', 'epoch 2'], ' EPOCH ')).toEqual([0, 2]);
  expect(findLines(['a'], '  ')).toEqual([]);
});

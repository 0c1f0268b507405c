// @vitest-environment happy-dom
import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { useLaunchHistory } from '../launch/history';
import { useRemembered } from './remembered';

afterEach(() => {
  cleanup();
  localStorage.clear();
});

const KEY = 'bai.things';
const NONE: string[] = [];
const open = () => renderHook(() => useRemembered(KEY, NONE)).result;

test('what one tab adds is kept when another adds something as well', () => {
  const [one, other] = [open(), open()];
  act(() => one.current[1]([...one.current[0], 'first']));
  act(() => other.current[1]([...other.current[0], 'second']));

  expect(one.current[0]).toEqual(['first', 'second']);
  expect(open().current[0]).toEqual(['first', 'second']);
});

test('what another window has changed is shown here, and what it has removed is not', () => {
  const here = open();
  const hear = (newValue: string | null): void =>
    act(() => {
      window.dispatchEvent(new StorageEvent('storage', { key: KEY, newValue }));
      window.dispatchEvent(new StorageEvent('storage', { key: 'other', newValue: '["no"]' }));
    });
  hear('["theirs"]');
  expect(here.current[0]).toEqual(['theirs']);
  hear('what another version wrote');
  expect(here.current[0]).toEqual([]);
  hear('["again"]');
  hear(null);
  expect(here.current[0]).toEqual([]);
});

test('no template is lost to a second form', () => {
  const [one, other] = [renderHook(useLaunchHistory), renderHook(useLaunchHistory)];
  act(() => one.result.current.save({ image: 'python' }, 'mine'));
  act(() => other.result.current.save({ image: 'r' }, 'also mine'));

  const titles = one.result.current.templates.map(({ title }) => title);
  expect(titles.sort()).toEqual(['also mine', 'mine']);
});

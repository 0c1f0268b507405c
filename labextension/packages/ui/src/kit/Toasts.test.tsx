// @vitest-environment happy-dom
import { act, cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import { useToasts } from './Toasts';

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function Page(): JSX.Element {
  const { notify, toasts, kept, undo, clear } = useToasts({ close: 'Close', undo: 'Undo' });
  const say = (...texts: string[]): void =>
    texts.forEach(text => notify('info', text, () => undefined));
  return (
    <>
      <button type="button" onClick={() => say('one', 'two')}>
        Say
      </button>
      <button type="button" onClick={() => say(...Array.from({ length: 50 }, () => 'more'))}>
        Say more
      </button>
      <button type="button" onClick={() => kept[0] && undo(kept[0])}>
        Undo the last
      </button>
      <button type="button" onClick={clear}>
        Clear
      </button>
      {toasts}
    </>
  );
}

beforeEach(async () => {
  await showPage(<Page />);
  vi.useFakeTimers();
  fireEvent.click(screen.getByRole('button', { name: 'Say' }));
});

const said = (): string | null =>
  screen.queryByRole('status')?.querySelector('.bai-toast-text')?.textContent ?? null;

const press = (name: string): void =>
  void fireEvent.click(screen.getByRole('button', { name }));

const pass = (milliseconds: number): void =>
  act(() => void vi.advanceTimersByTime(milliseconds));

test('what is said is shown for a moment, one after the other', () => {
  expect(said()).toBe('one');
  pass(5999);
  expect(said()).toBe('one');
  pass(1);
  expect(said()).toBe('two');
  pass(6000);
  expect(said()).toBeNull();
});

test('it stays while somebody points at it, or is in it with the keyboard', () => {
  const place = screen.getByRole('status').parentElement as HTMLElement;
  fireEvent.pointerEnter(place);
  pass(60_000);
  expect(said()).toBe('one');
  fireEvent.pointerLeave(place);
  fireEvent.focus(screen.getByRole('button', { name: 'Close' }));
  pass(60_000);
  expect(said()).toBe('one');

  fireEvent.blur(screen.getByRole('button', { name: 'Close' }));
  pass(6000);
  expect(said()).toBe('two');
});

test('it goes when it is closed, or with Escape', () => {
  fireEvent.click(screen.getByRole('button', { name: 'Close' }));
  expect(said()).toBe('two');
  fireEvent.keyDown(document, { key: 'Escape' });
  expect(said()).toBeNull();
});

test('after what was said was cleared away, what is said next is shown', () => {
  press('Clear');
  expect(said()).toBeNull();
  press('Say');
  expect(said()).toBe('one');
});

test('of more than is remembered the rest is shown', () => {
  press('Say more');
  expect(said()).toBe('more');
});

test('taking back what is not shown leaves what is', () => {
  press('Undo the last');
  expect(said()).toBe('one');
  press('Close');
  expect(said()).toBeNull();
});

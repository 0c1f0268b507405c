// @vitest-environment happy-dom
import { cleanup, render } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { useLeaving } from './leaving';

const ask = vi.fn();

function Unsaved(): null {
  useLeaving(true, ask);
  return null;
}

beforeEach(() => window.history.replaceState(null, '', '/lab/tree/one'));

afterEach(() => {
  cleanup();
  ask.mockClear();
});

/** Do as the browser does when its buttons have led elsewhere; tells who hears of it. */
function leadAway(): number {
  const heard = vi.fn();
  window.addEventListener('popstate', heard);
  window.history.replaceState(null, '', '/lab/tree/two');
  window.dispatchEvent(new PopStateEvent('popstate'));
  window.removeEventListener('popstate', heard);
  return heard.mock.calls.length;
}

/** Whether the browser would ask before the document is left. */
const warns = (): boolean =>
  !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));

test('the browser’s own buttons are held back from what stands at its address', () => {
  render(<Unsaved />);

  expect(leadAway()).toBe(0);
  expect(warns()).toBe(true);
});

test('a tab of JupyterLab’s is not left by the browser’s own buttons', () => {
  const { hook } = memoryLocation({ path: '/settings' });
  render(
    <Router hook={hook}>
      <Unsaved />
    </Router>
  );

  expect(leadAway()).toBe(1);
  expect(ask).not.toHaveBeenCalled();
  expect(warns()).toBe(true); // but by leaving JupyterLab
});

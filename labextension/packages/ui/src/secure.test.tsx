// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StartCard } from './launch/StartCard';
import { CopyButton } from './nouns/panels/SecretDialog';
import { copyText, newId } from './secure';
import { showPage } from './testing-page';

/** As it is for a page that came over plain HTTP. */
beforeEach(() => {
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  Reflect.deleteProperty(navigator, 'clipboard');
});

const SUBMISSION = { busy: false, error: null, href: null, submit: vi.fn(), leave: () => true };

test('what is named anew has a name that nothing else has', () => {
  const names = Array.from({ length: 100 }, newId);

  expect(new Set(names).size).toBe(100);
  expect(names.filter(name => !/^[0-9a-f]{32}$/.test(name))).toEqual([]);
});

test('what cannot be copied says so', async () => {
  await expect(copyText('words')).rejects.toThrow('may not copy');
});

test('a secret that cannot be copied is told to be copied by hand', async () => {
  await showPage(<CopyButton label="Secret key" value="s3cret" />, { areas: ['admin'] });

  fireEvent.click(screen.getByRole('button', { name: /Secret key/ }));

  expect((await screen.findByRole('alert')).textContent).toContain('mark the text');
});

test('code that cannot be copied is told', async () => {
  const wish = { image: 'python', slots: { cpu: '1' } } as never;
  const { host } = await showPage(
    <StartCard
      kind="batch"
      wish={wish}
      submission={SUBMISSION}
      onPlace={() => undefined}
      onSave={() => undefined}
    />,
    { areas: ['launch', 'work'] }
  );
  fireEvent.click(screen.getByRole('button', { name: /^Copy/ }));

  fireEvent.click((await screen.findAllByRole('menuitem'))[0] as HTMLElement);

  await vi.waitFor(() =>
    expect(host.notify).toHaveBeenCalledWith('error', 'The browser did not let this page copy.')
  );
});

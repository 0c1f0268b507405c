// @vitest-environment happy-dom
import { cleanup, configure, fireEvent, screen, within } from '@testing-library/react';
import type { Schemas } from '@backendai/api';
import axe from 'axe-core';
import { afterEach, expect, test, vi } from 'vitest';
import { showPage, type Answer, type Shown } from '../testing-page';
import { SSHKeyPanel } from './SSHKeyPanel';

afterEach(cleanup);
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const NONE: Schemas['SSHKey'] = {
  kind: '',
  public_key: '',
  fingerprint: '',
  changed_at: null,
  private_key: ''
};
const MADE: Schemas['SSHKey'] = {
  kind: 'ssh-ed25519',
  public_key: 'ssh-ed25519 AAAA ada@backendai',
  fingerprint: 'SHA256:abc',
  changed_at: '2026-11-01T10:00:00Z',
  private_key: ''
};

/** A service that keeps one key. */
function keeping(key: Schemas['SSHKey']): { asked: [string, unknown][]; answer: Answer } {
  let kept = key;
  const asked: [string, unknown][] = [];
  const answer: Answer = ({ method, body }) => {
    if (method !== 'GET') {
      asked.push([method, body]);
      kept = method === 'DELETE' ? NONE : MADE;
      return method === 'POST' ? { ...MADE, private_key: 'the private part' } : kept;
    }
    return kept;
  };
  return { asked, answer };
}

const show = (answer: Answer): Promise<Shown> =>
  showPage(<SSHKeyPanel keypair="k 1" />, { areas: ['own', 'admin'], answer });

test('a first key is made at once, and its private part is shown this once', async () => {
  const { asked, answer } = keeping(NONE);
  await show(answer);
  fireEvent.click(await screen.findByRole('button', { name: 'Make a new key' }));
  expect(await screen.findByText('the private part')).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'I have kept it' }));
  expect(await screen.findByText('ssh-ed25519 SHA256:abc')).toBeTruthy();
  expect(asked.map(([method]) => method)).toEqual(['POST']);
  expect(screen.queryByText('the private part')).toBeNull();
});

test('a key that is used is not replaced or removed without asking', async () => {
  const { asked, answer } = keeping(MADE);
  await show(answer);
  fireEvent.click(await screen.findByRole('button', { name: 'Make a new key' }));
  expect(await screen.findByText(/do not get the present key/)).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(asked).toEqual([]);
  fireEvent.click(await screen.findByRole('button', { name: 'Remove it' }));
  const dialog = await screen.findByRole('dialog', { name: 'Remove the SSH key?' });
  fireEvent.click(within(dialog).getByRole('button', { name: 'Remove it' }));
  expect(await screen.findByText('No SSH key yet')).toBeTruthy();
  expect(asked.map(([method]) => method)).toEqual(['DELETE']);
});

test('one’s own key is sent as it is, and does not stay in the field', async () => {
  const { asked, answer } = keeping(NONE);
  await show(answer);
  fireEvent.click(await screen.findByRole('button', { name: 'Use my own' }));
  const field = await screen.findByLabelText('Private key');
  fireEvent.change(field, { target: { value: '-----BEGIN…' } });
  const { violations } = await axe.run(screen.getByRole('dialog'), {
    rules: { region: { enabled: false }, 'color-contrast': { enabled: false } }
  });
  expect(violations.map(one => one.id)).toEqual([]);
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('ssh-ed25519 SHA256:abc')).toBeTruthy();
  expect(asked).toEqual([['PUT', { private_key: '-----BEGIN…' }]]);
  fireEvent.click(await screen.findByRole('button', { name: 'Use my own' }));
  expect(((await screen.findByLabelText('Private key')) as HTMLTextAreaElement).value).toBe('');
});

test('who presses twice makes one key', async () => {
  for (const begun of [NONE, MADE]) {
    const { asked, answer } = keeping(begun);
    await show(answer);
    const button = await screen.findByRole('button', { name: 'Make a new key' });
    if (begun === NONE) {
      fireEvent.click(button);
      fireEvent.click(button);
    } else {
      fireEvent.click(button);
      const dialog = within(await screen.findByRole('dialog'));
      const sure = dialog.getByRole('button', { name: 'Make a new key' });
      fireEvent.click(sure);
      fireEvent.click(sure);
    }
    fireEvent.click(await screen.findByRole('button', { name: 'I have kept it' }));
    expect(asked.map(([method]) => method)).toEqual(['POST']);
    cleanup();
  }
});

test('a key that is not taken is told of in the dialog, and goes on being there', async () => {
  const { host } = await show(({ method }) =>
    method === 'PUT'
      ? Response.json(
          { title: 'invalid', status: 422, detail: 'it has a passphrase' },
          { status: 422 }
        )
      : NONE
  );
  fireEvent.click(await screen.findByRole('button', { name: 'Use my own' }));
  const dialog = within(await screen.findByRole('dialog'));
  const field = dialog.getByLabelText('Private key');
  fireEvent.change(field, { target: { value: '-----BEGIN…' } });
  fireEvent.click(dialog.getByRole('button', { name: 'Save' }));
  expect((await dialog.findByRole('alert')).textContent).toBe('it has a passphrase');
  expect((field as HTMLTextAreaElement).value).toBe('-----BEGIN…');
  expect(host.notify).not.toHaveBeenCalled();
});

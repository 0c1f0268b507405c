// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { TextEditor } from './data/explorer/TextEditor';
import { leaveThen } from './leaving';
import { SecretDialog } from './nouns/panels/SecretDialog';
import { makeFolder } from './testing';
import { showPage } from './testing-page';
import { useAskBeforeLeaving } from './useAskBeforeLeaving';

afterEach(cleanup);

/** Text that stays on the page once it is saved. */
function Staying(): JSX.Element {
  const [text, setText] = useState('');
  const [saved, setSaved] = useState('');
  const leaving = useAskBeforeLeaving(text !== saved);
  return (
    <>
      <input aria-label="Text" value={text} onChange={event => setText(event.target.value)} />
      <button
        onClick={() => {
          leaving.allow();
          setSaved(text);
        }}
      >
        Save
      </button>
      {leaving.dialog}
    </>
  );
}

const write = (label: string, value: string): void =>
  void fireEvent.change(screen.getByLabelText(label), { target: { value } });

test('who has saved once is asked about what is changed afterwards', async () => {
  await showPage(<Staying />);
  const leave = vi.fn();
  write('Text', 'one');
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
  leaveThen(leave);
  expect(leave).toHaveBeenCalledOnce();

  write('Text', 'two');
  leaveThen(leave);
  expect(await screen.findByRole('dialog', { name: 'Leave without saving?' })).toBeTruthy();
  expect(leave).toHaveBeenCalledOnce();
});

test('text that was given up is gone, and is not asked about once more', async () => {
  const answer = (): unknown => ({ text: 'as it was', tag: '1' });
  await showPage(
    <TextEditor folder={makeFolder('data')} path="a.txt" onClose={() => undefined} />,
    {
      answer,
      areas: ['data']
    }
  );
  const field = await screen.findByRole('textbox', { name: 'Content' });
  fireEvent.change(field, { target: { value: 'changed' } });
  const leave = vi.fn();
  leaveThen(leave);
  fireEvent.click(await screen.findByRole('button', { name: 'Leave' }));
  expect(leave).toHaveBeenCalledOnce();
  expect((field as HTMLTextAreaElement).value).toBe('as it was');
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  leaveThen(leave);
  expect(leave).toHaveBeenCalledTimes(2);
});

test('a secret that is shown once is left by saying that it was kept, and else after asking', async () => {
  const close = vi.fn();
  await showPage(
    <SecretDialog
      title="Your new key"
      text="Shown once."
      secrets={[{ label: 'Secret', value: 'xyzzy' }]}
      onClose={close}
    />,
    { areas: ['admin'] }
  );
  const dialog = await screen.findByRole('dialog', { name: 'Your new key' });
  fireEvent.keyDown(dialog, { key: 'Escape' });
  const beside = document.querySelector('.MuiDialog-container') as Element;
  fireEvent.mouseDown(beside);
  fireEvent.click(beside);
  expect(close).not.toHaveBeenCalled();
  expect(screen.queryByRole('button', { name: 'Close' })).toBeNull();

  const leave = vi.fn();
  leaveThen(leave);
  expect(
    await screen.findByRole('dialog', { name: 'Leave without having kept it?' })
  ).toBeTruthy();
  expect(leave).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole('button', { name: 'Stay here' }));
  fireEvent.click(await screen.findByRole('button', { name: 'I have kept it' }));
  expect(close).toHaveBeenCalledOnce();
  leaveThen(leave);
  expect(leave).toHaveBeenCalledOnce();
});

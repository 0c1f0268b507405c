// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import { Absences } from '../Absences';
import { later, openedLater } from './later';
import { MenuButton } from './Menu';

afterEach(cleanup);

const Panel = ({ text }: { text: string }): JSX.Element => <p>{text}</p>;

test('a part comes when it is first shown, and is there at once from then on', async () => {
  const load = vi.fn(() => Promise.resolve(Panel));
  const Part = later(load);
  expect(load).not.toHaveBeenCalled();

  await showPage(<Part text="here" />);
  await screen.findByText('here');
  cleanup();
  await showPage(<Part text="again" />);

  expect(screen.getByText('again')).toBeTruthy();
  expect(load).toHaveBeenCalledOnce();
});

test('a part comes before it is shown when somebody comes to its button', async () => {
  const load = vi.fn(() => Promise.resolve(Panel));
  const Part = later(load);
  await showPage(
    <button type="button" {...Part.expecting}>
      More
    </button>
  );
  screen.getByRole('button').focus();
  expect(load).toHaveBeenCalledOnce();
  cleanup();

  await showPage(<Part text="at once" />);

  expect(screen.getByText('at once')).toBeTruthy();
});

test('a part that could not come is told of, and asked for again when needed again', async () => {
  let lost = true;
  const load = vi.fn(() =>
    lost
      ? Promise.reject(new TypeError('Failed to fetch dynamically imported module'))
      : Promise.resolve(Panel)
  );
  const Part = later(load);
  const notify = vi.fn();
  vi.useFakeTimers();
  await showPage(
    <>
      <Absences />
      <Part text="lost" />
    </>,
    { host: { notify } }
  );
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  expect(notify).toHaveBeenCalledExactlyOnceWith(
    'error',
    expect.stringContaining('This could not be loaded.')
  );
  expect(screen.queryByText('lost')).toBeNull();
  cleanup();
  lost = false;

  await showPage(<Part text="found" />);

  await screen.findByText('found');
});

test('a menu opens with its first entry in focus, though its list comes later', async () => {
  const entries = ['Rename', 'Stop'].map(text => ({ key: text, text }));
  await showPage(<MenuButton label="Actions" icon={null} entries={entries} />);
  const button = screen.getByRole('button', { name: 'Actions' });
  expect(button.getAttribute('aria-expanded')).toBe('false');

  fireEvent.click(button);

  const first = await screen.findByRole('menuitem', { name: 'Rename' });
  await vi.waitFor(() => expect(document.activeElement).toBe(first));
  expect(button.getAttribute('aria-expanded')).toBe('true');
});

test('what opens comes when it is first opened, and is there to close again', async () => {
  const Dialog = ({ open, text }: { open: boolean; text: string }): JSX.Element => (
    <p>{`${text} ${open ? 'open' : 'closed'}`}</p>
  );
  const load = vi.fn(() => Promise.resolve(Dialog));
  const Opened = openedLater(load);
  function Page(): JSX.Element {
    const [open, setOpen] = useState(false);
    return (
      <>
        <button type="button" onClick={() => setOpen(!open)}>
          Ask
        </button>
        <Opened open={open} text="is" />
      </>
    );
  }
  await showPage(<Page />);
  expect(load).not.toHaveBeenCalled();

  fireEvent.click(screen.getByRole('button', { name: 'Ask' }));
  await screen.findByText('is open');
  fireEvent.click(screen.getByRole('button', { name: 'Ask' }));

  await screen.findByText('is closed');
});

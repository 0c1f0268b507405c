// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import { later } from './later';
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

test('a part that is expected comes before it is shown', async () => {
  const load = vi.fn(() => Promise.resolve(Panel));
  const Part = later(load);
  Part.expect();
  await Promise.resolve();

  await showPage(<Part text="at once" />);

  expect(screen.getByText('at once')).toBeTruthy();
  expect(load).toHaveBeenCalledOnce();
});

test('a part that could not come is asked for again when it is needed again', async () => {
  const load = vi
    .fn(() => Promise.resolve(Panel))
    .mockRejectedValueOnce(new TypeError('Failed to fetch dynamically imported module'));
  const Part = later(load);
  await showPage(<Part text="lost" />);
  await vi.waitFor(() => expect(load).toHaveBeenCalledOnce());
  expect(screen.queryByText('lost')).toBeNull();
  cleanup();

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

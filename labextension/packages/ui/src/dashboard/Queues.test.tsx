// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { showPage } from '../testing-page';
import { Queues } from './Queues';

afterEach(cleanup);

const NOBODY = 'Nobody waits.';
const EMPTY = { resource_group: 'gpu', items: [], next: null, length: 0 };

const show = (answer: () => unknown): Promise<unknown> =>
  showPage(<Queues groups={['gpu']} />, { areas: ['work'], answer });

test('nobody waits only where the service says so', async () => {
  await show(() => new Promise(() => undefined));
  await screen.findByRole('status', { name: 'Loading…' });
  expect(screen.queryByText(NOBODY)).toBeNull();
  cleanup();

  await show(() => EMPTY);
  await screen.findByText(NOBODY);
});

test('what cannot be read is told, and asked for again', async () => {
  let broken = true;
  await show(() =>
    broken ? Response.json({ detail: 'out of order' }, { status: 400 }) : EMPTY
  );
  await screen.findByText('out of order');
  expect(screen.queryByText(NOBODY)).toBeNull();

  broken = false;
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText(NOBODY);
});

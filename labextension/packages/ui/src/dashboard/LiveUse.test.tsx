// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test } from 'vitest';
import { makeSession } from '../testing';
import { showPage, type Asked } from '../testing-page';
import { LiveUse } from './LiveUse';

afterEach(cleanup);

const BOTH = [makeSession({ id: 'a' }), makeSession({ id: 'b' })];

function Page(): JSX.Element {
  const [sessions, setSessions] = useState(BOTH);
  return (
    <>
      <button onClick={() => setSessions(BOTH.slice(1))}>One ends</button>
      <LiveUse sessions={sessions} />
    </>
  );
}

test('the past of a session stays in the sum when it ends', async () => {
  const series = (cpu: number) => ({
    series: { time: [980], cpu: [cpu], memory: [null], utilization: [null] }
  });
  const live = {
    at: 1000,
    items: [{ session_id: 'b', at: 1000, cpu: 2, memory: null, utilization: null }],
    nodes: []
  };
  const answers: Record<string, unknown> = {
    '/api/me': { name: 'mina', roles: ['user'] },
    '/api/usage/live': live,
    '/api/sessions/a/usage': series(5),
    '/api/sessions/b/usage': series(2)
  };
  await showPage(<Page />, {
    answer: ({ path }: Asked) => answers[path] ?? {},
    areas: ['work', 'admin']
  });
  const chart = await screen.findByRole('figure', { name: 'CPU' });
  fireEvent.click(await within(chart).findByRole('switch'));
  // The table begins with what was last.
  const past = (): string | null | undefined =>
    within(chart).getAllByRole('row').at(-1)?.querySelector('td .bai-cell')?.textContent;
  await waitFor(() => expect(past()).toBe('7'));

  fireEvent.click(screen.getByRole('button', { name: 'One ends' }));
  expect(past()).toBe('7');
});

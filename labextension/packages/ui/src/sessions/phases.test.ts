import { describe, expect, test } from 'vitest';
import { makeEvent, makeSession } from '../testing';
import { phasesOf, sharesOf } from './phases';

const at = (second: number): string => new Date(second * 1000).toISOString();
const told = (session: Parameters<typeof phasesOf>[0], events = [] as never[]) =>
  phasesOf(session, events).map(({ name, from, to }) => [name, from / 1000, to && to / 1000]);

describe('the phases of a session', () => {
  test('are only those it has reached', () => {
    const session = makeSession({ status: 'PENDING', created_at: at(10) });

    expect(told(session)).toEqual([['waiting', 10, null]]);
  });

  test('end where the next begins', () => {
    const session = makeSession({
      status: 'TERMINATED',
      created_at: at(10),
      scheduled_at: at(40),
      started_at: at(45),
      ended_at: at(100)
    });
    const stopping = makeEvent(session, { at: at(98), status: 'TERMINATING' });

    expect(told(session, [stopping] as never[])).toEqual([
      ['waiting', 10, 40],
      ['starting', 40, 45],
      ['running', 45, 98],
      ['stopping', 98, 100]
    ]);
  });

  test('are left out where they took no time', () => {
    const session = makeSession({
      status: 'RUNNING',
      created_at: at(10),
      scheduled_at: at(10),
      started_at: at(12)
    });

    expect(told(session).map(([name]) => name)).toEqual(['starting', 'running']);
  });

  test('that were short are still to be seen, and all of them fill the line', () => {
    const session = makeSession({
      status: 'RUNNING',
      created_at: at(0),
      scheduled_at: at(1),
      started_at: at(2)
    });
    const shares = sharesOf(phasesOf(session), 10_000_000);

    expect(Math.min(...shares)).toBeGreaterThan(0.04);
    expect(shares.reduce((one, other) => one + other, 0)).toBeCloseTo(1);
  });
});

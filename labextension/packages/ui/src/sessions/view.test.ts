import type { SessionPage } from '@backendai/api';
import { describe, expect, test } from 'vitest';
import { makeEvent, makeSession } from '../testing';
import { freeServer } from './NewSession';
import { applyEvent, EVERYBODY, firstLivePage, markStopping, replaceSession } from './view';

const view = firstLivePage('mina');
const at = (minute: number): string => `2026-01-02T03:${String(minute).padStart(2, '0')}:00Z`;

function pageOf(...sessions: SessionPage['items']): SessionPage {
  return { items: sessions, next: null, places: {} };
}

describe('an event about a session on the page', () => {
  const page = pageOf(makeSession({ id: 'a', revision: 3, status: 'CREATING' }));

  test('replaces its row', () => {
    const running = makeSession({ id: 'a', revision: 4 });

    expect(applyEvent(page, view, makeEvent(running))?.items).toEqual([running]);
  });

  test('changes nothing when the row is as new', () => {
    for (const revision of [2, 3]) {
      const old = makeSession({ id: 'a', revision, status: 'PENDING' });
      expect(applyEvent(page, view, makeEvent(old))).toBe(page);
    }
  });

  test('keeps a row that has ended, so that people see how', () => {
    const failed = makeSession({ id: 'a', revision: 4, status: 'ERROR', reason: 'no memory' });

    expect(applyEvent(page, view, makeEvent(failed))?.items[0]?.reason).toBe('no memory');
  });

  test('asks the service when the event does not say how the session is', () => {
    expect(applyEvent(page, view, makeEvent(makeSession(), { session: null }))).toBeNull();
  });
});

describe('an event about another session', () => {
  const page = pageOf(
    makeSession({ id: 'c', created_at: at(30) }),
    makeSession({ id: 'a', created_at: at(10) })
  );
  const ids = (next: SessionPage | null): string[] | undefined =>
    next?.items.map(row => row.id);

  test('puts a new session where its age belongs', () => {
    const insert = (minute: number) =>
      ids(applyEvent(page, view, makeEvent(makeSession({ id: 'n', created_at: at(minute) }))));

    expect(insert(40)).toEqual(['n', 'c', 'a']);
    expect(insert(20)).toEqual(['c', 'n', 'a']);
    expect(insert(5)).toEqual(['c', 'a', 'n']);
  });

  test('leaves an older one to the later page it is on', () => {
    const older = makeEvent(makeSession({ id: 'n', created_at: at(5) }));
    const more = { ...page, next: 'cursor' };

    expect(applyEvent(more, view, older)).toBe(more);
  });

  test('asks the service where a full page ends', () => {
    const event = makeEvent(makeSession({ id: 'n', created_at: at(40) }));

    expect(applyEvent(page, { ...view, limit: 2 }, event)).toBeNull();
  });

  test('asks the service when the oldest come first', () => {
    const event = makeEvent(makeSession({ id: 'n' }));

    expect(applyEvent(page, { ...view, order: 'created_at' }, event)).toBeNull();
  });

  test('does not move what is on later pages', () => {
    const event = makeEvent(makeSession({ id: 'n', created_at: at(40) }));

    expect(applyEvent(page, { ...view, after: 'cursor' }, event)).toBe(page);
  });

  test('is no business of a list that filters it out', () => {
    const event = makeEvent(makeSession({ id: 'n', owner: 'jun', created_at: at(40) }));
    const ended = makeEvent(makeSession({ id: 'n', status: 'ERROR', created_at: at(40) }));

    expect(applyEvent(page, view, event)).toBe(page);
    expect(applyEvent(page, view, ended)).toBe(page);
    expect(ids(applyEvent(page, { ...view, owner: EVERYBODY }, event))).toContain('n');
    expect(ids(applyEvent(page, { ...view, status: 'ended' }, ended))).toContain('n');
  });
});

describe('stopping', () => {
  test('shows at once what will happen', () => {
    const page = pageOf(
      makeSession({ id: 'a' }),
      makeSession({ id: 'b', status: 'PENDING' }),
      makeSession({ id: 'c' })
    );

    const after = markStopping(markStopping(page, 'a'), 'b');

    expect(after.items.map(row => row.status)).toEqual(['TERMINATING', 'CANCELLED', 'RUNNING']);
  });

  test('whoever waits while others make room for it has not started either', () => {
    const page = pageOf(makeSession({ id: 'a', status: 'RESERVED' }));

    expect(markStopping(page, 'a').items[0]?.status).toBe('CANCELLED');
  });

  test('an answer never undoes what an event has told already', () => {
    const page = pageOf(makeSession({ revision: 6, status: 'TERMINATED' }));
    const answer = makeSession({ revision: 5, status: 'TERMINATING' });

    expect(replaceSession(page, answer).items[0]?.status).toBe('TERMINATED');
  });
});

describe('the server of a new session', () => {
  const onServer = (server: string, user = 'mina') =>
    makeSession({ attachment: { user, server, prefix: '' } });

  test('is the default one while that is free', () => {
    expect(freeServer('mina', [onServer('session-2'), onServer('', 'jun')])).toBeNull();
  });

  test('is the first named one that nobody uses otherwise', () => {
    expect(freeServer('mina', [onServer('')])).toBe('mina/session-2');
    expect(freeServer('a/b', [onServer('', 'a/b'), onServer('session-2', 'a/b')])).toBe(
      'a%2Fb/session-3'
    );
  });
});

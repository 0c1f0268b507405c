import { describe, expect, test } from 'vitest';
import {
  blank,
  changedFields,
  findConflicts,
  findWrong,
  rebase,
  toBody,
  toDrafts,
  valueAt
} from './form';
import type { NounField } from './noun';

const FIELDS = [
  { name: 'name', kind: { type: 'line', most: 64 }, required: true },
  { name: 'description', kind: { type: 'line', most: 512 } },
  {
    name: 'rules.timeout',
    kind: { type: 'duration', most: 9000, specials: [] },
    initial: 60
  },
  { name: 'rules.strict', kind: { type: 'flag' }, initial: true },
  {
    name: 'rules.grace',
    kind: { type: 'number', least: 0, most: 9 },
    initial: 3,
    when: (values: Readonly<Record<string, unknown>>) => values['rules.strict'] === true
  },
  { name: 'token', kind: { type: 'line', most: 64 }, secret: true }
] as unknown as NounField[];

const ITEM = {
  name: 'vision',
  description: 'Images',
  rules: { timeout: 60, strict: true, grace: 3, kept: 'as it is' }
};

test('what is nested is found by its path', () => {
  expect(valueAt(ITEM, 'rules.grace')).toBe(3);
  expect(valueAt(ITEM, 'rules.nothing.more')).toBeUndefined();
});

test('only what has changed is said, and a document with the whole of it', () => {
  const before = toDrafts(FIELDS, ITEM);
  const drafts = { ...before, 'rules.timeout': '2m' };

  const changed = changedFields(FIELDS, before, drafts);

  expect(changed.map(field => field.name)).toEqual(['rules.timeout']);
  expect(toBody(changed, drafts, ITEM)).toEqual({
    rules: { timeout: 120, strict: true, grace: 3, kept: 'as it is' }
  });
  expect(ITEM.rules.timeout).toBe(60);
});

test('a new one begins as the API makes it', () => {
  expect(blank(FIELDS)).toEqual({ rules: { timeout: 60, strict: true, grace: 3 } });
});

test('a secret is never shown, and left alone unless something is written', () => {
  const before = toDrafts(FIELDS, { ...ITEM, token: 'never' });

  expect(before.token).toBe('');
  expect(changedFields(FIELDS, before, { ...before, token: 'new' })).toHaveLength(1);
});

test('what is needed and what is wrong is named, but not what is hidden', () => {
  const drafts = { ...toDrafts(FIELDS, ITEM), name: ' ', 'rules.grace': '99' };

  expect(Object.keys(findWrong(FIELDS, drafts))).toEqual(['name', 'rules.grace']);
  expect(Object.keys(findWrong(FIELDS, { ...drafts, 'rules.strict': false }))).toEqual([
    'name'
  ]);
});

describe('when somebody else was faster', () => {
  const before = toDrafts(FIELDS, ITEM);
  const mine = { ...before, description: 'Mine', 'rules.timeout': '2m' };
  const now = { ...ITEM, description: 'Theirs', name: 'sight' };

  test('both values are told where both have changed something', () => {
    const conflicts = findConflicts(FIELDS, before, mine, now);

    expect(conflicts.map(each => [each.field.name, each.mine, each.theirs])).toEqual([
      ['name', null, 'sight'],
      ['description', 'Mine', 'Theirs']
    ]);
  });

  test('my changes go over theirs, and the rest is theirs', () => {
    expect(rebase(FIELDS, before, mine, now)).toMatchObject({
      name: 'sight',
      description: 'Mine',
      'rules.timeout': '2m'
    });
  });
});

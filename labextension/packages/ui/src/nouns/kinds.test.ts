import { describe, expect, test } from 'vitest';
import { isSame, readDraft, toDraft, type Kind } from './kinds';

const LIMITS: Kind = { type: 'slots', limits: true };
const AMOUNTS: Kind = { type: 'slots', limits: false };
const COUNT: Kind = {
  type: 'number',
  least: -1,
  most: 10,
  specials: [{ value: null, text: 'unlimited' }]
};
const TIME: Kind = { type: 'duration', most: 86_400, specials: [{ value: 0, text: 'never' }] };

describe('what the API shows is edited and said as it was', () => {
  test.each<[Kind, unknown]>([
    [{ type: 'line', most: 64 }, 'vision'],
    [{ type: 'flag' }, true],
    [COUNT, null],
    [COUNT, 5],
    [TIME, 0],
    [TIME, 5400],
    [{ type: 'size', specials: [{ value: '-1', text: 'unlimited' }] }, '-1'],
    [{ type: 'size' }, '10g'],
    [LIMITS, { cpu: '4', mem: '16g', 'cuda.device': 'inf' }],
    [{ type: 'weights' }, { cpu: 0.5 }],
    [{ type: 'words', most: 9 }, ['a', 'b']],
    [{ type: 'numbers', least: 1000 }, [1000, 2000]],
    [{ type: 'choices', of: ['a', 'b'], some: true }, ['b']],
    [{ type: 'reference', noun: 'domains', optional: true }, null],
    [{ type: 'hosts' }, { local: ['upload-file'] }],
    [{ type: 'moment' }, '2026-03-02T08:00:00.000Z']
  ])('%j %j', (kind, value) => {
    expect(readDraft(kind, toDraft(kind, value))).toEqual({ value });
  });
});

test('a special value is none of the numbers', () => {
  expect(toDraft(COUNT, null)).not.toBe(toDraft(COUNT, 0));
  expect(readDraft(COUNT, '0')).toEqual({ value: 0 });
});

test.each<[Kind, string, string]>([
  [COUNT, '11', 'range'],
  [COUNT, '1.5', 'whole'],
  [COUNT, '', 'whole'],
  [TIME, '25h', 'durationRange'],
  [TIME, 'soon', 'duration'],
  [{ type: 'size' }, 'much', 'size'],
  [{ type: 'moment' }, '', 'moment'],
  [{ type: 'line', most: 3 }, 'four', 'tooManyLetters'],
  [{ type: 'line', most: 9, slug: true }, 'a b', 'slug'],
  [{ type: 'page', most: 3 }, 'ของ', 'tooLong'],
  [{ type: 'numbers', least: 1000 }, '999', 'numbers']
])('%j refuses %s', (kind, draft, wrong) => {
  expect(readDraft(kind, draft)).toMatchObject({ wrong });
});

test('names may be of any script', () => {
  expect(readDraft({ type: 'line', most: 9, slug: true }, '비전')).toEqual({ value: '비전' });
});

test('every amount has to be one, and only limits may be lifted', () => {
  expect(readDraft(LIMITS, { cpu: '' })).toEqual({
    wrong: 'amountOf',
    values: { slot: 'cpu' }
  });
  expect(readDraft(AMOUNTS, { cpu: 'inf' })).toMatchObject({ wrong: 'amountOf' });
  expect(readDraft(AMOUNTS, { mem: '1024m' })).toEqual({ value: { mem: '1g' } });
});

test('the same said otherwise is no change', () => {
  expect(isSame(AMOUNTS, { mem: '1024m', cpu: '1' }, { cpu: '1.0', mem: '1g' })).toBe(true);
  expect(isSame(TIME, '60m', '1h')).toBe(true);
  expect(isSame(TIME, '60m', '61m')).toBe(false);
});

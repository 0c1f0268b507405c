import { expect, test } from 'vitest';
import { parseDuration, showDuration, writeDuration } from './durations';

test.each([
  ['90', 90],
  ['90s', 90],
  ['8h', 28_800],
  ['1d 12h', 129_600],
  ['1d12h', 129_600],
  ['1.5h', 5400],
  ['2w', 1_209_600],
  ['0', 0]
])('%s is read as %i seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test.each(['', 'soon', '8 hours', '-5', '8h x', '1dd'])('%s is no length of time', text => {
  expect(parseDuration(text)).toBeNull();
});

test.each([0, 59, 60, 3600, 86_400, 129_600, 100_001])('%i seconds stay the same', seconds => {
  expect(parseDuration(writeDuration(seconds))).toBe(seconds);
});

test('two units are enough for a reader', () => {
  expect(showDuration(90_061, 'en')).toBe('1 day 1 hr');
  expect(showDuration(0, 'en')).toBe('0 sec');
  expect(showDuration(3600, 'ko')).toBe('1시간');
});

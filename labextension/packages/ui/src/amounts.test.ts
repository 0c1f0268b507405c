import { describe, expect, test } from 'vitest';
import { acceleratorName, parseAmount, showAmount, sortSlots, writeAmount } from './amounts';
import { ago } from './times';

describe('amounts', () => {
  test('are read as the service writes them', () => {
    expect(parseAmount('cpu', '0.5')).toBe(0.5);
    expect(parseAmount('mem', '1536m')).toBe(1536 * 2 ** 20);
    expect(parseAmount('cuda.mem', '16g')).toBe(16 * 2 ** 30);
    expect(parseAmount('mem', '512MiB')).toBe(2 ** 29);
    expect(parseAmount('mem', '100')).toBe(100);
  });

  test('are refused when they are none', () => {
    for (const text of ['', '-1', 'many', '1e3', '2g']) {
      expect(parseAmount('cpu', text), text).toBeNull();
    }
  });

  test('of accelerators name their maker, and the instances that GPUs are cut into', () => {
    expect(acceleratorName('cuda.device')).toBe('NVIDIA');
    expect(acceleratorName('cuda.device:1g.10gb-mig')).toBe('NVIDIA 1g.10gb');
    expect(acceleratorName('npu.device')).toBe('npu');
  });

  test('survive being written and read again', () => {
    for (const amount of [1, 1000, 2 ** 20, 3 * 2 ** 29, 2 ** 40, 3 * 2 ** 50, 2 ** 60]) {
      expect(parseAmount('mem', writeAmount('mem', amount))).toBe(amount);
    }
    expect(writeAmount('mem', 3 * 2 ** 29)).toBe('1536m');
    expect(writeAmount('mem', 2 ** 60)).toBe('1e');
    expect(writeAmount('cpu', 0.1 + 0.2)).toBe('0.3');
  });

  test('are shown without noise', () => {
    expect(showAmount('cpu', 0.1 + 0.2, 'en')).toBe('0.3');
    expect(showAmount('mem', 1.5 * 2 ** 30, 'en')).toBe('1.5 GiB');
    expect(showAmount('mem', 0, 'en')).toBe('0');
    expect(showAmount('mem', 1.5 * 2 ** 60, 'en')).toBe('1.5 EiB');
  });

  test('come in the order people think of them', () => {
    expect(sortSlots(['rocm.device', 'mem', 'cuda.device', 'cpu'])).toEqual([
      'cpu',
      'mem',
      'cuda.device',
      'rocm.device'
    ]);
  });
});

describe('times', () => {
  const now = Date.parse('2026-01-02T12:00:00Z');

  test('are told in the largest unit that fits', () => {
    expect(ago('2026-01-02T11:59:55Z', now, 'en')).toBe('now');
    expect(ago('2026-01-02T11:55:00Z', now, 'en')).toBe('5 min. ago');
    expect(ago('2026-01-02T09:01:00Z', now, 'en')).toBe('2 hr. ago');
    expect(ago('2025-12-31T12:00:00Z', now, 'ko')).toBe('그저께');
  });

  test('are never in the future, whatever the clocks say', () => {
    expect(ago('2026-01-02T12:03:00Z', now, 'en')).toBe('now');
  });
});

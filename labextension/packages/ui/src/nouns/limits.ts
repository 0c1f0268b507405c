/** Values with a meaning of their own, as several nouns have them. */
import type { Kind, Special } from './kinds';

export const MOST = 2 ** 31 - 1;
export const UNLIMITED: Special = { value: null, text: 'unlimited' };
export const MINUS_ONE: Special = { value: '-1', text: 'unlimited' };
export const ZERO: Special = { value: 0, text: 'unlimited' };
export const NEVER: Special = { value: 0, text: 'never' };

export const line = (most = 512): Kind => ({ type: 'line', most });
export const slug = (most = 64): Kind => ({ type: 'line', most, slug: true });
export const flag: Kind = { type: 'flag' };
export const limits: Kind = { type: 'slots', limits: true };
export const hosts: Kind = { type: 'hosts' };

export const count = (specials: Special[] = [], least = 0, most = MOST): Kind => ({
  type: 'number',
  least,
  most,
  specials
});

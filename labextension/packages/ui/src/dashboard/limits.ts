/** Which of several limits counts: the one that leaves the least. */
import type { Resources } from '@backendai/api';
import { parseAmount, sortSlots } from '../amounts';

export interface Narrowest {
  slot: string;
  used: number;
  cap: number;
  left: number;
  /** Whose limit it is: `project`, and `vision`. */
  scope: string;
  name: string;
}

/** For every slot that is limited at all, the limit that is nearest. */
export function narrowest({ limits }: Pick<Resources, 'limits'>): Narrowest[] {
  const found = new Map<string, Narrowest>();
  for (const { slot, cap, used, scope, name } of limits) {
    const most = cap ? parseAmount(slot, cap) : null;
    if (most === null) {
      continue;
    }
    const taken = parseAmount(slot, used) ?? 0;
    const left = Math.max(0, most - taken);
    const before = found.get(slot);
    if (!before || left < before.left) {
      found.set(slot, { slot, used: taken, cap: most, left, scope, name });
    }
  }
  return sortSlots([...found.keys()])
    .map(slot => found.get(slot))
    .filter(each => each !== undefined);
}

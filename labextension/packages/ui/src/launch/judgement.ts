/** Whether what is asked for could start now: decided in the page, from the room there is. */
import type { ImageChoice, Resources, SlotRoom } from '@backendai/api';
import { parseAmount, SESSIONS } from '../amounts';

/** Amounts by slot: bytes, or plain numbers. */
export type Amounts = Record<string, number>;

export interface Shortage {
  slot: string;
  asked: number;
  have: number;
  /** Enough is free, but nowhere on one node. */
  scattered?: true;
  /** The limit that is short; absent where it is the cluster itself. */
  limit?: { scope: string; name: string };
}

export type Judgement =
  { verdict: 'now' | 'unknown' } | { verdict: 'wait' | 'never'; shortages: Shortage[] };

export interface Room {
  total: number;
  free: number;
  /** The most that is free on one node. */
  largest: number;
  /** What the biggest node has in all: more than this can never start. */
  most: number;
}

export function readRoom(room: SlotRoom | undefined): Room {
  const read = (text: string | undefined): number =>
    (room && text && parseAmount(room.slot, text)) || 0;
  return {
    total: read(room?.total),
    free: read(room?.free),
    largest: read(room?.largest),
    most: read(room?.most)
  };
}

/** Judge a session of *amounts* by the cluster's nodes and the limits of who asks. */
export function judge(amounts: Amounts, resources: Resources): Judgement {
  const never: Shortage[] = [];
  const wait: Shortage[] = [];
  for (const [slot, asked] of Object.entries({ ...amounts, [SESSIONS]: 1 })) {
    if (asked > 0) {
      const short = findShortages(slot, asked, resources);
      never.push(...short.never);
      wait.push(...short.wait);
    }
  }
  if (never.length) {
    return { verdict: 'never', shortages: never };
  }
  if (resources.nodes === 0) {
    return { verdict: 'unknown' };
  }
  return wait.length ? { verdict: 'wait', shortages: wait } : { verdict: 'now' };
}

function findShortages(
  slot: string,
  asked: number,
  { room: rooms, limits = [], nodes }: Resources
): { never: Shortage[]; wait: Shortage[] } {
  const never: Shortage[] = [];
  const wait: Shortage[] = [];
  // Without a node nobody knows what the next one will bring.
  if (nodes > 0 && slot !== SESSIONS) {
    const { free, largest, most } = readRoom(rooms.find(room => room.slot === slot));
    if (asked > most) {
      never.push({ slot, asked, have: most });
    } else if (asked > free) {
      wait.push({ slot, asked, have: free });
    } else if (asked > largest) {
      wait.push({ slot, asked, have: largest, scattered: true });
    }
  }
  for (const { scope, name, cap, used, slot: limited } of limits) {
    const quota = cap && limited === slot ? parseAmount(slot, cap) : null;
    if (quota === null) {
      continue;
    }
    const have = Math.max(0, quota - (parseAmount(slot, used) ?? 0));
    const limit = { scope, name };
    if (asked > quota) {
      never.push({ slot, asked, have: quota, limit });
    } else if (asked > have) {
      wait.push({ slot, asked, have, limit });
    }
  }
  return { never, wait };
}

/** Whether the nodes that are there could ever give all of *slots*, were they free. */
export function couldEverStart(slots: Record<string, string>, resources: Resources): boolean {
  const asked = Object.entries(slots).map(
    ([slot, text]) => [slot, parseAmount(slot, text) ?? 0] as const
  );
  const nodesOnly = { ...resources, limits: [] };
  return judge(Object.fromEntries(asked), nodesOnly).verdict !== 'never';
}

const USUAL: Amounts = { cpu: 1, mem: 2 ** 30 };

/**
 * What a form begins with: what the environment prefers, but no more than a node has,
 * and never less than the environment needs.
 */
export function startingAmounts(
  image: ImageChoice | undefined,
  slots: string[],
  { room, nodes }: Resources
): Amounts {
  const start = (slot: string): number => {
    const read = (text: string | undefined): number => (text && parseAmount(slot, text)) || 0;
    const wanted = read(image?.preferred[slot]) || USUAL[slot] || 0;
    const { most } = readRoom(room.find(each => each.slot === slot));
    const possible = nodes > 0 ? Math.min(wanted, most) : wanted;
    return Math.max(possible, read(image?.minimum[slot]));
  };
  return Object.fromEntries(slots.map(slot => [slot, start(slot)]));
}

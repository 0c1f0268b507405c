/** What there is to choose from, and what is left of it once a place is chosen. */
import type { CheckedPreset, GroupRoom, Resources, SlotRoom } from '@backendai/api';
import { parseAmount } from '../amounts';

export interface Supply extends Resources {
  presets?: CheckedPreset[];
  /** The sums over each resource group's nodes. */
  groups?: GroupRoom[];
  /** `largest` and `most` are no node's: no node of the group can have more. */
  isBound?: true;
}

/** Where a session belongs and where it runs; empty where there is no choice. */
export interface Place {
  project: string;
  group: string;
}

export function startPlace(
  { project, projects, resource_groups: groups }: Supply,
  given: { project?: string | null; resource_group?: string | null }
): Place {
  return {
    project: pick(projects, given.project, project),
    group: pick(groups, given.resource_group)
  };
}

function pick(open: string[] = [], ...wanted: (string | null | undefined)[]): string {
  const found = wanted.find(each => each && open.includes(each));
  return open.length > 1 ? (found ?? open[0] ?? '') : '';
}

/** Whether nobody has told the limits of the chosen project. */
export function isUnknownProject(supply: Supply, { project }: Place): boolean {
  return project !== '' && project !== supply.project;
}

/** The part of *supply* that counts at *place*. */
export function supplyAt(supply: Supply, place: Place): Supply {
  const limits = isUnknownProject(supply, place)
    ? supply.limits.filter(({ scope }) => scope !== 'project')
    : supply.limits;
  const group = (supply.groups ?? []).find(({ name }) => name === place.group);
  if (!group) {
    return { ...supply, limits };
  }
  const room = supply.room
    .filter(({ slot }) => slot in group.total)
    .map(each => roomOf(group, each));
  return { ...supply, limits, room, nodes: room.length ? supply.nodes : 0, isBound: true };
}

function roomOf({ total = {}, remaining = {} }: GroupRoom, all: SlotRoom): SlotRoom {
  const { slot } = all;
  const less = (one: string, other: string): string =>
    (parseAmount(slot, one) ?? 0) < (parseAmount(slot, other) ?? 0) ? one : other;
  const most = total[slot] ?? '0';
  const free = remaining[slot] ?? '0';
  return {
    slot,
    total: most,
    free,
    largest: less(free, all.largest),
    most: less(most, all.most)
  };
}

/** The launch form without its looks: what was typed, what is wrong, what is sent. */
import type { CheckedPreset, ImageChoice, PossibleChange, Resources } from '@backendai/api';
import { GIB, isBytes, parseAmount, sortSlots, writeAmount } from '../amounts';
import { readRoom, startingAmounts, type Amounts } from './judgement';
import { readMounts, writeMounts, type ChosenMount, type MountWish } from './mounts';
import { startPlace, supplyAt, type Place, type Supply } from './supply';

/** What the spawner reads from the form's field `spec`. */
export interface LaunchSpec {
  image: string;
  name: string | null;
  project: string | null;
  resource_group: string | null;
  slots: Record<string, string>;
  shmem: string | null;
  mounts: MountWish[];
}

/** What is known of an earlier choice; a folder may be written on one line there. */
export type GivenSpec = Partial<Omit<LaunchSpec, 'mounts'>> & {
  mounts?: (string | MountWish)[];
};

export interface LaunchState {
  image: string;
  place: Place;
  name: string;
  shmem: string;
  /** What was typed, by slot: memory in GiB. */
  typed: Record<string, string>;
  /** Slots somebody has changed: a new environment leaves them alone. */
  touched: string[];
  mounts: ChosenMount[];
}

export interface FieldError {
  field: string;
  /** A key of the catalogue, and the amount it mentions. */
  text: string;
  slot?: string;
  amount?: number;
}

/** The slots a form asks for: processors and memory, and what any node offers besides. */
export function formSlots({ room }: Resources): string[] {
  const offered = room.filter(each => readRoom(each).total > 0).map(each => each.slot);
  return sortSlots([...new Set(['cpu', 'mem', ...offered])]);
}

export function startState(supply: Supply, given: GivenSpec): LaunchState {
  const { images } = supply;
  const place = startPlace(supply, given);
  const image =
    images.find(each => each.name === given.image) ??
    images.find(each => each.installed) ??
    images[0];
  const state: LaunchState = {
    image: image?.name ?? '',
    place,
    name: given.name ?? '',
    shmem: given.shmem ? typedAmount('shmem', parseAmount('shmem', given.shmem) ?? 0) : '',
    typed: freshAmounts(image, place, supply),
    touched: [],
    mounts: readMounts(given.mounts)
  };
  for (const [slot, text] of Object.entries(given.slots ?? {})) {
    const amount = parseAmount(slot, text);
    if (amount !== null && slot in state.typed) {
      state.typed[slot] = typedAmount(slot, amount);
      state.touched.push(slot);
    }
  }
  return state;
}

function freshAmounts(
  image: ImageChoice | undefined,
  place: Place,
  supply: Supply
): Record<string, string> {
  return typedAmounts(startingAmounts(image, formSlots(supply), supplyAt(supply, place)));
}

/** What nobody has typed follows the environment and the place. */
function refresh(state: LaunchState, supply: Supply): LaunchState {
  const image = supply.images.find(each => each.name === state.image);
  const kept = Object.fromEntries(state.touched.map(slot => [slot, state.typed[slot] ?? '']));
  return { ...state, typed: { ...freshAmounts(image, state.place, supply), ...kept } };
}

export function chooseImage(state: LaunchState, name: string, supply: Supply): LaunchState {
  return refresh({ ...state, image: name }, supply);
}

export function choosePlace(
  state: LaunchState,
  place: Partial<Place>,
  supply: Supply
): LaunchState {
  return refresh({ ...state, place: { ...state.place, ...place } }, supply);
}

/** What a preset has of each slot: nothing of an accelerator that it does not name. */
function presetAmounts(state: LaunchState, { resource_slots: slots }: CheckedPreset): Amounts {
  const amounts: Amounts = {};
  for (const slot of Object.keys(state.typed)) {
    const text = slots[slot] ?? (slot === 'cpu' || slot === 'mem' ? '' : '0');
    const amount = parseAmount(slot, text);
    if (amount !== null) {
      amounts[slot] = amount;
    }
  }
  return amounts;
}

export function choosePreset(
  state: LaunchState,
  preset: CheckedPreset,
  supply: Supply
): LaunchState {
  const amounts = presetAmounts(state, preset);
  const shmem = parseAmount('shmem', preset.shared_memory) ?? 0;
  const group = supply.resource_groups.find(name => name === preset.resource_group);
  const chosen = {
    ...state,
    shmem: shmem > 0 ? typedAmount('shmem', shmem) : state.shmem,
    typed: { ...state.typed, ...typedAmounts(amounts) },
    touched: [...new Set([...state.touched, ...Object.keys(amounts)])]
  };
  // Without a choice of groups there is none to tell.
  return group && state.place.group ? choosePlace(chosen, { group }, supply) : chosen;
}

export function hasPreset(state: LaunchState, preset: CheckedPreset): boolean {
  const group = preset.resource_group ?? '';
  const isThere = !group || !state.place.group || group === state.place.group;
  const amounts = Object.entries(presetAmounts(state, preset));
  return (
    isThere && amounts.every(([slot, n]) => readTyped(slot, state.typed[slot] ?? '') === n)
  );
}

export function typeAmount(state: LaunchState, slot: string, text: string): LaunchState {
  return {
    ...state,
    typed: { ...state.typed, [slot]: text },
    touched: [...new Set([...state.touched, slot])]
  };
}

/** Choose what the scheduler says would start at once. */
export function applyChange(
  state: LaunchState,
  { slots, resource_group: group }: PossibleChange,
  supply: Supply
): LaunchState {
  const amounts: Amounts = {};
  for (const slot of slots ? Object.keys(state.typed) : []) {
    amounts[slot] = parseAmount(slot, slots?.[slot] ?? '0') ?? 0;
  }
  const chosen = {
    ...state,
    typed: { ...state.typed, ...typedAmounts(amounts) },
    touched: [...new Set([...state.touched, ...Object.keys(amounts)])]
  };
  return group ? choosePlace(chosen, { group }, supply) : chosen;
}

/** The next round amount above or below, never below nothing. */
export function stepAmount(state: LaunchState, slot: string, step: 1 | -1): LaunchState {
  const now = Number((state.typed[slot] ?? '').replace(',', '.')) || 0;
  const steps = slot.endsWith('.shares') ? 10 : 1; // in one whole
  // Rounded first: 0.3 times 10 is a little less than 3 here.
  const place = Math.round(now * steps * 1000) / 1000;
  const next = step > 0 ? Math.floor(place) + 1 : Math.ceil(place) - 1;
  return typeAmount(state, slot, String(Math.max(0, next) / steps));
}

function typedAmount(slot: string, amount: number): string {
  return String(isBytes(slot) ? Math.round((amount / GIB) * 10_000) / 10_000 : amount);
}

function typedAmounts(amounts: Amounts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(amounts).map(([slot, amount]) => [slot, typedAmount(slot, amount)])
  );
}

/** Read what was typed in a field; null if it is no amount. Commas are points. */
export function readTyped(slot: string, text: string): number | null {
  const plain = text.trim().replace(',', '.');
  if (!/^\d{1,7}(\.\d{0,4})?$/.test(plain)) {
    return null;
  }
  return isBytes(slot) ? readGib(Number(plain)) : Number(plain);
}

/** Four decimals tell every whole MiB from the next: 0.0938 is 96 MiB, and no more. */
function readGib(amount: number): number {
  const whole = Math.round(amount * 1024);
  const isWhole = Math.abs(amount * 1024 - whole) < 0.06;
  return isWhole ? whole * (GIB / 1024) : Math.round(amount * GIB);
}

export function readAmounts(state: LaunchState): Amounts {
  const entries = Object.entries(state.typed).map(
    ([slot, text]) => [slot, readTyped(slot, text) ?? 0] as const
  );
  return Object.fromEntries(entries);
}

const NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$/;

export function findErrors(state: LaunchState, resources: Resources): FieldError[] {
  const errors: FieldError[] = [];
  const image = resources.images.find(each => each.name === state.image);
  if (!image) {
    errors.push({ field: 'environment', text: 'launch.environmentMissing' });
  }
  for (const [slot, text] of Object.entries(state.typed)) {
    const error = findAmountError(slot, text, image, resources);
    if (error) {
      errors.push({ field: slot, ...error });
    }
  }
  if (state.name && !NAME.test(state.name)) {
    errors.push({ field: 'name', text: 'launch.nameWrong' });
  }
  if (state.shmem && readTyped('shmem', state.shmem) === null) {
    errors.push({ field: 'shmem', text: 'launch.notNumber' });
  }
  return errors;
}

function findAmountError(
  slot: string,
  text: string,
  image: ImageChoice | undefined,
  { room, nodes }: Resources
): Omit<FieldError, 'field'> | null {
  const amount = readTyped(slot, text);
  if (amount === null) {
    return { text: 'launch.notNumber' };
  }
  if (slot.split(':')[0]?.endsWith('.device') && !Number.isInteger(amount)) {
    return { text: 'launch.tooFine' };
  }
  const least = parseAmount(slot, image?.minimum[slot] ?? '0') ?? 0;
  if (amount < least) {
    return { text: 'launch.tooLittle', slot, amount: least };
  }
  const { most } = readRoom(room.find(each => each.slot === slot));
  if (nodes > 0 && amount > most) {
    return { text: 'launch.tooMuch', slot, amount: most };
  }
  return null;
}

export function toSpec(state: LaunchState): LaunchSpec {
  const slots: Record<string, string> = {};
  for (const [slot, amount] of Object.entries(readAmounts(state))) {
    // Nothing, where somebody says so, is not the same as what the environment prefers.
    if (amount > 0 || state.touched.includes(slot)) {
      slots[slot] = writeAmount(slot, amount);
    }
  }
  const shmem = state.shmem ? readTyped('shmem', state.shmem) : null;
  return {
    image: state.image,
    name: state.name || null,
    project: state.place.project || null,
    resource_group: state.place.group || null,
    slots,
    shmem: shmem === null ? null : writeAmount('shmem', shmem),
    mounts: writeMounts(state.mounts)
  };
}

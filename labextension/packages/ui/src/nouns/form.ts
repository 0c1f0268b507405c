/** What is in a noun's form: drafts by field, and the request they make. */
import type { Me } from '@backendai/api';
import { isSame, readDraft, toDraft, type Draft } from './kinds';
import { fieldsOf, type AnyNoun, type NounField } from './noun';

export type Drafts = Record<string, Draft>;
export type Wrong = Record<string, { key: string; values?: Record<string, unknown> }>;
/** What the service shows; documents are objects in it. */
export type Item = Record<string, unknown>;

/** The value at `scheduler_opts.pending_timeout` of what is shown. */
export function valueAt(item: Item | null, name: string): unknown {
  return name
    .split('.')
    .reduce<unknown>((found, part) => (found as Item | null | undefined)?.[part], item);
}

/** A new one, as the API makes it if nothing is said. */
export function blank(fields: readonly NounField[]): Item {
  const item: Item = {};
  for (const { name, initial } of fields) {
    if (initial !== undefined) {
      put(item, name.split('.'), initial, null);
    }
  }
  return item;
}

const edited = (field: NounField, item: Item | null): unknown =>
  field.value && item ? field.value(item) : valueAt(item, field.name);

/** What a form begins with: an item to change, or what new ones get by themselves. */
export function toDrafts(fields: readonly NounField[], item: Item | null): Drafts {
  return Object.fromEntries(
    fields.map(field => [
      field.name,
      toDraft(field.kind, field.secret ? undefined : edited(field, item))
    ])
  );
}

/** The fields this person fills in: to make one, or to change one. */
export function openFields(noun: AnyNoun, me: Me, change: boolean): NounField[] {
  const site = me.roles.includes('superadmin');
  return fieldsOf(noun).filter(
    field => !(change && field.once) && (field.by !== 'superadmin' || site)
  );
}

export const isShown = (field: NounField, drafts: Drafts): boolean =>
  !field.when || field.when(drafts);

/** What is wrong with what is in the form, by field. */
export function findWrong(fields: readonly NounField[], drafts: Drafts): Wrong {
  const wrong: Wrong = {};
  for (const field of fields.filter(each => isShown(each, drafts))) {
    const draft = drafts[field.name] ?? '';
    const reading = readDraft(field.kind, draft);
    if (field.required && isEmpty(draft)) {
      wrong[field.name] = { key: 'required' };
    } else if (reading.wrong !== undefined && !(field.secret && draft === '')) {
      wrong[field.name] = {
        key: reading.wrong,
        ...(reading.values ? { values: reading.values } : {})
      };
    }
  }
  return wrong;
}

function isEmpty(draft: Draft): boolean {
  return typeof draft === 'string'
    ? draft.trim() === ''
    : typeof draft === 'object' && Object.keys(draft).length === 0;
}

/** The fields that somebody has changed. */
export function changedFields(
  fields: readonly NounField[],
  before: Drafts,
  drafts: Drafts
): NounField[] {
  return fields.filter(
    field =>
      isShown(field, drafts) &&
      !isSame(field.kind, before[field.name] ?? '', drafts[field.name] ?? '')
  );
}

/**
 * The request that says *fields* of *drafts*. Parts of a document are said with the
 * whole of it, since what is left out of one is set back: *item* has the rest.
 */
export function toBody(
  fields: readonly NounField[],
  drafts: Drafts,
  item: Item | null
): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const field of fields) {
    const reading = readDraft(field.kind, drafts[field.name] ?? '');
    if (reading.wrong === undefined) {
      put(body, field.name.split('.'), reading.value, item);
    }
  }
  return body;
}

function put(body: Item, path: string[], value: unknown, item: Item | null): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) {
    body[first] = value;
    return;
  }
  const inner = (body[first] ?? structuredClone(item?.[first] ?? {})) as Item;
  body[first] = inner;
  put(inner, rest, value, null);
}

/** What somebody else has changed meanwhile. */
export interface Conflict {
  field: NounField;
  /** What the form says, where its owner has changed it, too. */
  mine: Draft | null;
  theirs: Draft;
}

/** Compare what the form began with to what is there now. */
export function findConflicts(
  fields: readonly NounField[],
  before: Drafts,
  drafts: Drafts,
  now: Item
): Conflict[] {
  const theirs = toDrafts(fields, now);
  return changedFields(fields, before, theirs).map(field => {
    const mine = drafts[field.name] ?? '';
    const touched = !isSame(field.kind, mine, before[field.name] ?? '');
    return { field, mine: touched ? mine : null, theirs: theirs[field.name] ?? '' };
  });
}

/** The form over what is there now: what somebody has changed here stays. */
export function rebase(
  fields: readonly NounField[],
  before: Drafts,
  drafts: Drafts,
  now: Item
): Drafts {
  const mine = changedFields(fields, before, drafts).map(field => field.name as string);
  const kept = Object.fromEntries(mine.map(name => [name, drafts[name] ?? '']));
  return { ...toDrafts(fields, now), ...kept };
}

/**
 * Kinds of fields: how each is kept while it is edited, read for the API, and compared.
 *
 * A field in a form holds a *draft*: text, a flag, a list or a table, whatever its
 * control edits. What a draft says wrongly is named by a key of `wrong.…`.
 */
import type { Me } from '@backendai/api';
import { parseAmount, writeAmount } from '../amounts';
import { parseDuration, writeDuration } from '../durations';

/** A value with a meaning of its own, such as null for no limit. */
export interface Special {
  value: number | string | null;
  /** Its words: `special.<text>`. */
  text: string;
}

export type Kind =
  | { type: 'line'; most: number; slug?: boolean }
  | { type: 'page'; most: number; code?: boolean }
  | { type: 'flag' }
  | { type: 'number'; least: number; most: number; digits?: number; specials?: Special[] }
  | { type: 'duration'; least?: number; most: number; specials?: Special[] }
  | { type: 'size'; specials?: Special[] }
  | { type: 'moment' }
  | { type: 'slots'; limits: boolean }
  | {
      type: 'choice';
      of: readonly string[];
      open?: boolean;
      /** Which of them somebody may choose; any, if it is absent. */
      admits?(value: string, me: Me): boolean;
    }
  | { type: 'choices'; of: readonly string[]; some: boolean }
  | { type: 'reference'; noun: Referred; optional?: boolean }
  | { type: 'words'; most: number; noun?: Referred }
  | { type: 'numbers'; least: number }
  | { type: 'hosts' }
  | { type: 'weights' };

/** Nouns that fields refer to. */
export type Referred =
  | 'domains'
  | 'projects'
  | 'users'
  | 'registries'
  | 'resource-groups'
  | 'user-policies'
  | 'keypair-policies'
  | 'project-policies'
  | 'agents';

export type Draft =
  string | boolean | string[] | Record<string, string> | Record<string, string[]>;

/** What a draft says: a value for the API, or what is wrong with it. */
export type Reading =
  { value: unknown; wrong?: never } | { wrong: string; values?: Record<string, unknown> };

/** Marks a draft that holds a special value instead of an amount. */
const SPECIAL = '~';

export const asSpecial = (special: Special): string => SPECIAL + special.text;
export const isSpecial = (draft: Draft): boolean =>
  typeof draft === 'string' && draft.startsWith(SPECIAL);

export const specialsOf = (kind: Kind): readonly Special[] =>
  'specials' in kind ? (kind.specials ?? []) : [];

function special(kind: Kind, value: unknown): Special | undefined {
  return specialsOf(kind).find(each => each.value === value);
}

const EMPTY: Partial<Record<Kind['type'], Draft>> = {
  flag: false,
  choices: [],
  slots: {},
  hosts: {},
  weights: {}
};

/** How *value*, as the API shows it, is edited. */
export function toDraft(kind: Kind, value: unknown): Draft {
  const meaning = special(kind, value);
  if (meaning) {
    return asSpecial(meaning);
  }
  if (value === undefined || value === null) {
    return EMPTY[kind.type] ?? '';
  }
  switch (kind.type) {
    case 'flag':
      return value === true;
    case 'duration':
      return writeDuration(value as number);
    case 'moment':
      return toLocal(String(value));
    case 'words':
    case 'numbers':
      return (value as unknown[]).join('\n');
    case 'choices':
      return [...(value as string[])];
    case 'slots':
      return { ...(value as Record<string, string>) };
    case 'weights':
      return mapValues(value as Record<string, number>, String);
    case 'hosts':
      return mapValues(value as Record<string, string[]>, list => [...list]);
    default:
      return String(value as string | number);
  }
}

/** What *draft* says, or what is wrong with it. */
export function readDraft(kind: Kind, draft: Draft): Reading {
  if (typeof draft === 'string') {
    const meaning = specialsOf(kind).find(each => asSpecial(each) === draft);
    return meaning ? { value: meaning.value } : readText(kind, draft.trim(), draft);
  }
  if (typeof draft === 'boolean') {
    return { value: draft };
  }
  if (Array.isArray(draft)) {
    const empty = kind.type === 'choices' && kind.some && draft.length === 0;
    return empty ? { wrong: 'some' } : { value: draft };
  }
  return kind.type === 'hosts'
    ? { value: draft }
    : readAmounts(kind, draft as Record<string, string>);
}

function readText(kind: Kind, text: string, raw: string): Reading {
  switch (kind.type) {
    case 'number':
      return readNumber(kind, text);
    case 'duration':
      return readSeconds(kind, text);
    case 'size': {
      const bytes = parseAmount('mem', text);
      return bytes === null ? { wrong: 'size' } : { value: writeAmount('mem', bytes) };
    }
    case 'moment':
      return Number.isNaN(Date.parse(text))
        ? { wrong: 'moment' }
        : { value: new Date(text).toISOString() };
    case 'reference':
      return { value: text || null };
    case 'words':
      return { value: [...new Set(linesOf(text))] };
    case 'numbers':
      return readNumbers(text, kind.least);
    case 'page':
      return new TextEncoder().encode(raw).length > kind.most
        ? { wrong: 'tooLong', values: { most: kind.most } }
        : { value: raw };
    case 'line':
      return readLine(kind, text);
    default:
      return { value: text };
  }
}

const SLUG = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_])?$/u;

function readLine(kind: { most: number; slug?: boolean }, text: string): Reading {
  if ([...text].length > kind.most) {
    return { wrong: 'tooManyLetters', values: { most: kind.most } };
  }
  if (kind.slug && text && !SLUG.test(text)) {
    return { wrong: 'slug' };
  }
  return { value: text };
}

function readNumber(kind: Kind & { type: 'number' }, text: string): Reading {
  const number = Number(text);
  const { least, most, digits = 0 } = kind;
  if (!text || !/^-?\d+(\.\d+)?$/.test(text) || (digits === 0 && !Number.isInteger(number))) {
    return { wrong: digits === 0 ? 'whole' : 'number' };
  }
  return number < least || number > most
    ? { wrong: 'range', values: { least, most } }
    : { value: number };
}

function readSeconds(kind: Kind & { type: 'duration' }, text: string): Reading {
  const seconds = parseDuration(text);
  const { least = 0, most } = kind;
  if (seconds === null) {
    return { wrong: 'duration' };
  }
  return seconds < least || seconds > most
    ? { wrong: 'durationRange', values: { most: writeDuration(most) } }
    : { value: seconds };
}

export const linesOf = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map(line => line.trim())
    .filter(Boolean);

function readNumbers(text: string, least: number): Reading {
  const found = linesOf(text).map(Number);
  return found.every(each => Number.isInteger(each) && each >= least)
    ? { value: found }
    : { wrong: 'numbers', values: { least } };
}

function readAmounts(kind: Kind, rows: Record<string, string>): Reading {
  const found: Record<string, unknown> = {};
  for (const [slot, text] of Object.entries(rows)) {
    const amount = readAmount(kind, slot, text.trim());
    if (amount === null) {
      return { wrong: 'amountOf', values: { slot } };
    }
    found[slot] = amount;
  }
  return { value: found };
}

function readAmount(kind: Kind, slot: string, text: string): string | number | null {
  if (kind.type === 'weights') {
    return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
  }
  if (text === 'inf' && kind.type === 'slots' && kind.limits) {
    return text;
  }
  const amount = parseAmount(slot, text);
  return amount === null ? null : writeAmount(slot, amount);
}

/** Whether two drafts of one kind say the same. */
export function isSame(kind: Kind, one: Draft, other: Draft): boolean {
  const [left, right] = [readDraft(kind, one), readDraft(kind, other)];
  if (left.wrong !== undefined || right.wrong !== undefined) {
    return JSON.stringify(one) === JSON.stringify(other);
  }
  return JSON.stringify(sorted(left.value)) === JSON.stringify(sorted(right.value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return [...(value as unknown[])].sort();
  }
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value as object)
      .map(([key, each]) => [key, sorted(each)])
      .sort();
  }
  return value;
}

function mapValues<In, Out>(
  from: Record<string, In>,
  to: (value: In) => Out
): Record<string, Out> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, to(value)]));
}

/** As `<input type="datetime-local">` has it: in the reader's own zone. */
function toLocal(iso: string): string {
  const moment = new Date(iso);
  const shifted = moment.getTime() - moment.getTimezoneOffset() * 60_000;
  return new Date(shifted).toISOString().slice(0, 16);
}

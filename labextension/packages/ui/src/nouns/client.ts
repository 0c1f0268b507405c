/** The common verbs of every noun, as requests. */
import { unwrap, type Api } from '@backendai/api';
import type { Host } from '../host';
import type { AnyRow, NounName } from './noun';

export interface NounPage {
  items: AnyRow[];
  next?: string | null;
}

export interface BulkResult {
  verb: string;
  index: number;
  status: number;
  name: string | null;
  secret: string | null;
  error: string | null;
}

export interface BulkAnswer {
  succeeded: number;
  failed: number;
  results: BulkResult[];
}

interface Answer {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/*
 * The client's own types are one per path; what is common to all of them is this. A
 * test compares descriptions with the API's document, which is what types would do.
 */
type Call = (path: string, options?: object) => Promise<Answer>;
type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** Make a request whose path is known only when the page runs. */
export function ask<T>(host: Host, method: Method, path: string, options?: object): Promise<T> {
  const call = (host.api as unknown as Record<keyof Api & Method, Call>)[method];
  return unwrap(call(path, options) as Promise<{ data?: T; response: Response }>);
}

const one = (noun: NounName, id: string): string => `/api/${noun}/${encodeURIComponent(id)}`;

export function listNouns(
  host: Host,
  noun: NounName | 'agents',
  query: Record<string, string | number | boolean | undefined>,
  signal?: AbortSignal
): Promise<NounPage> {
  return ask(host, 'GET', `/api/${noun}`, { params: { query }, signal });
}

export function readNoun(
  host: Host,
  noun: NounName,
  id: string,
  signal?: AbortSignal
): Promise<AnyRow> {
  return ask(host, 'GET', one(noun, id), { signal });
}

export function createNoun(
  host: Host,
  noun: NounName,
  body: Record<string, unknown>
): Promise<AnyRow> {
  return ask(host, 'POST', `/api/${noun}`, { body });
}

/** Change one, if nobody has since *revision*. */
export function changeNoun(
  host: Host,
  noun: NounName,
  id: string,
  body: Record<string, unknown>,
  revision?: number
): Promise<AnyRow> {
  const headers = revision === undefined ? {} : { 'If-Match': `"${revision}"` };
  return ask(host, 'PATCH', one(noun, id), { body, headers });
}

export function purgeNoun(host: Host, noun: NounName, id: string): Promise<void> {
  return ask(host, 'DELETE', one(noun, id));
}

export function changeMany(
  host: Host,
  noun: NounName,
  ids: readonly string[],
  fields: Record<string, unknown>
): Promise<BulkAnswer> {
  const update = ids.map(reference => ({ reference, fields }));
  return ask(host, 'POST', `/api/${noun}/bulk`, { body: { update } });
}

export function purgeMany(
  host: Host,
  noun: NounName,
  ids: readonly string[]
): Promise<BulkAnswer> {
  return ask(host, 'POST', `/api/${noun}/bulk`, { body: { purge: ids } });
}

export const nounKeys = {
  all: (noun: NounName) => ['noun', noun] as const,
  one: (noun: NounName, id: string) => ['noun', noun, 'one', id] as const,
  choices: (noun: string, search: string) => ['noun', noun, 'choices', search] as const
};

/** A service as tests want it: what it is asked, and what it answers. */
import { createApi } from '@backendai/api';
import type { Host } from '../host';
import type { FileEntry, StorageHost } from './types';

export interface Asked {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
}

type Answer = (asked: Asked) => unknown;

/** Answers `GET /api/…` by the longest beginning that is known; anything else is missing. */
export function serve(answers: Record<string, Answer>) {
  const asked: Asked[] = [];
  const told: { level: string; text: string; undo?: (() => void) | undefined }[] = [];
  const opened: string[] = [];
  const api = createApi(async request => {
    const url = new URL(request.url);
    const text = await request.text();
    const one: Asked = {
      method: request.method,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: text ? JSON.parse(text) : null
    };
    asked.push(one);
    const known = Object.keys(answers)
      .filter(key => `${one.method} ${one.path}`.startsWith(key))
      .sort((a, b) => b.length - a.length)[0];
    const answer = known === undefined ? undefined : answers[known]?.(one);
    return answer instanceof Response
      ? answer
      : answer === undefined
        ? Response.json({ title: 'missing', detail: 'there is no such thing' }, { status: 404 })
        : Response.json(answer);
  }, 'http://localhost/');
  const host: Host = {
    kind: 'console',
    api,
    listen: () => () => undefined,
    notify: (level, text, undo) => told.push({ level, text, undo }),
    addressOf: path => path,
    writeHeaders: () => ({}),
    retitle: () => undefined,
    hrefOf: path => path,
    open: path => opened.push(path),
    launchHref: () => '/hub/spawn',
    login: () => undefined,
    language: 'en',
    colorMode: 'light',
    visible: true
  };
  return { host, asked, told, opened };
}

export function makeEntry(name: string, changes: Partial<FileEntry> = {}): FileEntry {
  return {
    name,
    kind: 'file',
    size: 5,
    modified: '2026-01-02T03:00:00Z',
    mode: 0o644,
    tag: `tag-of-${name}`,
    target: '',
    ...changes
  };
}

export function makeStorage(changes: Partial<StorageHost> = {}): StorageHost {
  return {
    name: 'local',
    is_default: true,
    state: 'ok',
    permissions: [
      'create-vfolder',
      'modify-vfolder',
      'delete-vfolder',
      'mount-in-session',
      'upload-file',
      'download-file',
      'invite-others',
      'set-user-specific-permission'
    ],
    capabilities: [],
    reason: '',
    since: null,
    used_percent: null,
    total_bytes: null,
    free_bytes: null,
    ...changes
  };
}

export const MINA = {
  name: 'mina',
  roles: ['user'],
  domain: 'default',
  project: 'vision',
  projects: ['vision']
};

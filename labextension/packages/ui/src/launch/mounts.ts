/** The folders somebody chose for a session: where each of them appears, and how. */
import type { Folder } from '@backendai/api';

export const HOME = '/home/work';
const BREW = '.linuxbrew';
const MODES = ['ro', 'rw', 'wd'] as const;

/** Read; write as well; delete as well. */
export type MountMode = (typeof MODES)[number];

/** What is sent of one folder, without what is left to the service. */
export interface MountWish {
  folder: string;
  subpath?: string;
  target?: string;
  permission?: MountMode | null;
}

export interface ChosenMount {
  /** An id where it was picked from the list, else what somebody has written. */
  folder: string;
  /** A part of the folder; empty for all of it. */
  subpath: string;
  /** As typed; empty for the folder's own name. */
  target: string;
  /** At most this; null for all that its user may do. */
  permission: MountMode | null;
}

/** Read folders as people and programs write them: `data/2026:sets:ro`, or an object. */
export function readMounts(given: (string | MountWish)[] = []): ChosenMount[] {
  const read = given.map(each => readWish(typeof each === 'string' ? parseLine(each) : each));
  const texts = read.map(each => JSON.stringify(each));
  return read.filter((each, at) => each.folder && texts.indexOf(texts[at] ?? '') === at);
}

function parseLine(text: string): MountWish {
  const [folder = '', ...rest] = text.trim().split(':');
  const mode = MODES.find(each => each === rest.at(-1)) ?? null;
  const target = (mode ? rest.slice(0, -1) : rest).join(':');
  return { folder, target, permission: mode };
}

function readWish({ folder, subpath, target, permission }: MountWish): ChosenMount {
  const [name = '', ...parts] = folder.split('/');
  return {
    folder: name,
    subpath: [...parts, subpath ?? ''].filter(Boolean).join('/'),
    target: target ?? '',
    permission: permission ?? null
  };
}

export function writeMounts(mounts: ChosenMount[]): MountWish[] {
  return mounts.map(({ folder, subpath, target, permission }) => ({
    folder,
    ...(partOf(subpath) ? { subpath: partOf(subpath) } : {}),
    ...(target.trim() ? { target: target.trim() } : {}),
    ...(permission ? { permission } : {})
  }));
}

/** A part of a folder, as typed, without the slashes around it. */
function partOf(subpath: string): string {
  return subpath.trim().replace(/^\/+|\/+$/g, '');
}

export function chooseFolder(mounts: ChosenMount[], { id }: Folder): ChosenMount[] {
  return [...mounts, { folder: id, subpath: '', target: '', permission: null }];
}

export function changeMount(
  mounts: ChosenMount[],
  at: number,
  change: Partial<ChosenMount>
): ChosenMount[] {
  return mounts.map((each, index) => (index === at ? { ...each, ...change } : each));
}

/** Whether `reference`, an id or a name, means this folder. */
export function means(reference: string, { id, name }: Folder): boolean {
  return reference === id || reference.toLowerCase() === name.toLowerCase();
}

/** Where a folder appears in the session, as far as can be told before. */
export function appearsAt(target: string, name: string): string {
  const wanted = target.trim().replace(/\/+$/, '');
  if (!wanted && name.toLowerCase() === BREW) {
    return `/home/linuxbrew/${BREW}`;
  }
  return wanted.startsWith('/') ? wanted : `${HOME}/${wanted || name}`;
}

/** Whether every session of its user has the folder without being asked for it. */
export function comesByItself({ name }: Folder): boolean {
  return name.startsWith('.');
}

/** The project in whose sessions alone a folder can be; empty where any will do. */
export function boundTo(folder: Folder, project: string): string {
  const { ownership_type: kind, usage_mode: mode, project: owner } = folder;
  // Models of a model store are for the whole domain; which they are the service knows.
  const bound = kind === 'project' && mode !== 'model' && owner && owner !== project;
  return bound ? owner : '';
}

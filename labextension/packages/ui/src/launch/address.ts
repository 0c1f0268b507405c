/** A wish as the address of the launch page, so that it can be sent and reloaded. */
import { spare, type Wish } from './wish';

/** `/launch?image=python&cpu=2…`: what is usual is not in it. */
export function launchAddress(wish: Partial<Wish>): string {
  const query = writeWish(wish).toString();
  return query ? `/launch?${query}` : '/launch';
}

export function writeWish(wish: Partial<Wish>): URLSearchParams {
  const { slots, mounts, environ, dependencies, ...rest } = spare({ image: '', ...wish });
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(rest)) {
    query.set(key, String(value));
  }
  for (const [slot, amount] of Object.entries(slots ?? {})) {
    query.append('slot', `${slot}=${String(amount)}`);
  }
  for (const mount of mounts ?? []) {
    query.append('mount', JSON.stringify(mount));
  }
  for (const [name, value] of Object.entries(environ ?? {})) {
    query.append('env', `${name}=${value}`);
  }
  dependencies?.forEach(each => query.append('after', each));
  return query;
}

const TEXTS = [
  'image',
  'name',
  'project',
  'resource_group',
  'shmem',
  'startup_command',
  'starts_at',
  'bootstrap_script',
  'tag'
] as const;
const NUMBERS = ['batch_timeout', 'max_attempts', 'cluster_size', 'priority'] as const;

/** Read what {@link writeWish} has written, or somebody by hand; the rest is left out. */
export function readWish(query: URLSearchParams): Partial<Wish> {
  const wish: Record<string, unknown> = {};
  for (const key of TEXTS) {
    const value = query.get(key);
    if (value) {
      wish[key] = value;
    }
  }
  for (const key of NUMBERS) {
    const value = Number(query.get(key) ?? '');
    if (Number.isInteger(value) && value > 0) {
      wish[key] = value;
    }
  }
  if (query.get('type') === 'batch') {
    wish.type = 'batch';
  }
  if (query.get('cluster_mode') === 'multi-node') {
    wish.cluster_mode = 'multi-node';
  }
  const pairs = (key: string): Record<string, string> =>
    Object.fromEntries(
      query
        .getAll(key)
        .map(splitPair)
        .filter(pair => pair !== null)
    );
  const mounts = query
    .getAll('mount')
    .map(readMount)
    .filter(mount => mount !== null);
  const all = {
    ...wish,
    slots: pairs('slot'),
    environ: pairs('env'),
    mounts,
    dependencies: query.getAll('after')
  };
  return spare({ image: '', ...all } as Wish);
}

function splitPair(text: string): [string, string] | null {
  const at = text.indexOf('=');
  return at > 0 ? [text.slice(0, at), text.slice(at + 1)] : null;
}

function readMount(text: string): NonNullable<Wish['mounts']>[number] | null {
  try {
    const mount = JSON.parse(text) as { folder?: unknown };
    return typeof mount.folder === 'string'
      ? (mount as NonNullable<Wish['mounts']>[number])
      : null;
  } catch {
    return { folder: text };
  }
}

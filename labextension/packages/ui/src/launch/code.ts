/** A session's request as somebody would write it: for Python, and for a shell. */
import type { MountWish } from './mounts';
import { spare, type Wish } from './wish';

const WIDTH = 72;

/** A literal of Python. */
function literal(value: unknown, indent: string): string {
  if (value === null || value === undefined) {
    return 'None';
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  if (typeof value !== 'object') {
    return JSON.stringify(value);
  }
  const parts = Array.isArray(value)
    ? value.map(each => literal(each, `${indent}    `))
    : Object.entries(value).map(
        ([key, each]) => `${JSON.stringify(key)}: ${literal(each, `${indent}    `)}`
      );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const short = `${open ?? ''}${parts.join(', ')}${close ?? ''}`;
  if (short.length + indent.length < WIDTH) {
    return short;
  }
  const lines = parts.map(part => `${indent}    ${part},\n`).join('');
  return `${open ?? ''}\n${lines}${indent}${close ?? ''}`;
}

export function writePython(wish: Wish): string {
  const { type, mounts, ...rest } = spare(wish);
  const lines = Object.entries(rest).map(([key, value]) =>
    argument(key, literal(value, '    '))
  );
  const imports = ['from backendai_hub.api.sessions import SessionRequest'];
  if (mounts?.length) {
    imports.push('from backendai_hub.core.mounts import MountRequest');
    const wished = mounts.map(mount => `        ${pythonMount(mount)},\n`).join('');
    lines.push(argument('mounts', `[\n${wished}    ]`));
  }
  imports.push('from backendai_hub.client import Client');
  if (type) {
    imports.push('from backendai_hub.core.sessions import SessionType');
    lines.push(argument('type', `SessionType.${type.toUpperCase()}`));
  }
  const request = `request = SessionRequest(\n${lines.join('')})`;
  const call = 'with Client() as client:\n    session = client.sessions.create(request)\n';
  return `${imports.sort().join('\n')}\n\n${request}\n${call}    print(session.id, session.status)\n`;
}

const argument = (name: string, value: string): string => `    ${name}=${value},\n`;

function pythonMount(mount: MountWish): string {
  const parts = Object.entries(mount)
    .filter(([, value]) => value !== null && value !== '')
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `MountRequest(${parts.join(', ')})`;
}

/** A word of a shell: quoted where it has to be. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function writeCommand(wish: Wish): string {
  const { type, startup_command: command } = wish;
  const flags = type === 'batch' ? batchFlags(wish) : interactiveFlags(wish);
  const words =
    type === 'batch'
      ? ['backendai run', ...flags, `-- ${quote(command ?? '')}`]
      : ['backendai session start', ...flags, quote(wish.image)];
  const line = words.join(' ');
  return line.length <= WIDTH ? line : words.join(' \\\n  ');
}

type Flag = [name: string, value: string | number | null | undefined];

const written = (flags: Flag[]): string[] =>
  flags
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => `--${name} ${quote(String(value))}`);

function sharedFlags(wish: Wish): string[] {
  const { slots = {}, mounts = [] } = wish;
  const said = spare(wish);
  return [
    ...written([
      ['name', wish.name],
      [
        'resources',
        Object.entries(slots)
          .map(([slot, amount]) => `${slot}=${String(amount)}`)
          .join(',')
      ],
      ['shmem', wish.shmem],
      ['project', wish.project],
      ['resource-group', wish.resource_group],
      ['priority', wish.priority],
      ['cluster-size', said.cluster_size],
      ['cluster-mode', said.cluster_mode]
    ]),
    ...mounts.map(mount => `-v ${quote(commandMount(mount))}`)
  ];
}

function interactiveFlags(wish: Wish): string[] {
  return sharedFlags(wish);
}

function batchFlags(wish: Wish): string[] {
  const { environ = {}, dependencies = [], max_attempts: attempts = 1 } = wish;
  return [
    ...written([
      ['image', wish.image],
      ['at', wish.starts_at],
      ['timeout', wish.batch_timeout],
      ['retries', attempts > 1 ? attempts - 1 : null],
      ['tag', wish.tag]
    ]),
    ...sharedFlags(wish),
    ...dependencies.map(each => `--after ${quote(each)}`),
    ...Object.entries(environ).map(([name, value]) => `--env ${quote(`${name}=${value}`)}`)
  ];
}

function commandMount(mount: MountWish): string {
  const { folder, subpath, target, permission } = mount as unknown as Record<
    string,
    string | null
  >;
  const name = subpath ? `${folder ?? ''}/${subpath}` : (folder ?? '');
  return `${name}${target ? `:${target}` : ''}${permission === 'ro' ? ':ro' : ''}`;
}

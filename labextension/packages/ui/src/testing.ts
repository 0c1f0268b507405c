/** Things that tests are about, with whatever does not matter filled in. */
import type {
  CheckedPreset,
  EventMessage,
  Folder,
  GroupRoom,
  Mount,
  Resources,
  Session,
  SessionContainer,
  ShownSession,
  Why
} from '@backendai/api';

export function makeSession(changes: Partial<Session> = {}): Session {
  return {
    id: 'a',
    name: 'train',
    type: 'interactive',
    owner: 'mina',
    domain: 'default',
    project: 'vision',
    image: 'python',
    slots: { cpu: '1' },
    shmem: '64m',
    status: 'RUNNING',
    reason: '',
    created_at: '2026-01-02T03:00:00Z',
    agent: null,
    scheduled_at: null,
    started_at: null,
    ended_at: null,
    deadline_at: null,
    exit_code: null,
    result: 'undefined',
    attempts: 0,
    max_attempts: 1,
    batch_timeout: null,
    starts_at: null,
    dependencies: [],
    tag: null,
    job_priority: 0,
    is_preemptible: true,
    preemptions: 0,
    labels: {},
    cluster_size: 1,
    cluster_mode: 'single-node',
    cluster_strategy: null,
    containers: [],
    cluster_network: '',
    devices: [],
    attachment: null,
    url: null,
    resource_group: 'default',
    priority: 10,
    revision: 1,
    idle_expires_at: null,
    ...changes
  };
}

export function makeContainer(changes: Partial<SessionContainer> = {}): SessionContainer {
  return {
    id: 'c1',
    host: 'main1',
    role: 'main',
    idx: 1,
    node: 'gpu-01',
    state: 'running',
    reason: '',
    exit_code: null,
    devices: [],
    ...changes
  };
}

export function makeWhy(changes: Partial<Why> = {}): Why {
  return {
    session: 'a',
    status: 'PENDING',
    position: 2,
    waiting: 5,
    reasons: ['cpu: asks 4, 2 free on gpu-01'],
    changes: [],
    starts_at: null,
    at_the_earliest: false,
    hangs_on: '',
    at: '2026-01-02T03:00:00.000Z',
    ...changes
  };
}

export function makeShown(changes: Partial<ShownSession> = {}): ShownSession {
  return { ...makeSession(), why: null, mounts: [], ...changes };
}

export function makeEvent(session: Session, changes: Partial<EventMessage> = {}): EventMessage {
  return {
    seq: 1,
    at: '2026-01-02T03:00:00Z',
    kind: 'session.changed',
    session_id: session.id,
    folder_id: null,
    text: '',
    status: session.status,
    session,
    why: null,
    ...changes
  };
}

export function makeGroup(
  name: string,
  total: Record<string, string>,
  remaining = total
): GroupRoom {
  return { name, total, using: {}, remaining };
}

export function makePreset(changes: Partial<CheckedPreset> = {}): CheckedPreset {
  return {
    name: 'small',
    resource_slots: { cpu: '1', mem: '4g' },
    shared_memory: '0',
    resource_group: null,
    allocatable: true,
    reason: '',
    ...changes
  };
}

export function makeResources(changes: Partial<Resources> = {}): Resources {
  return {
    images: [
      {
        name: 'python',
        title: 'Python',
        minimum: { cpu: '1', mem: '1g' },
        preferred: { cpu: '2', mem: '2g' },
        installed: true
      },
      {
        name: 'torch',
        title: 'Torch',
        minimum: { cpu: '2', mem: '8g' },
        preferred: { cpu: '4', mem: '8g', 'cuda.device': '1' },
        installed: true
      }
    ],
    room: [
      { slot: 'cpu', total: '16', free: '6', largest: '4', most: '8' },
      { slot: 'mem', total: '64g', free: '32g', largest: '16g', most: '48g' },
      { slot: 'cuda.device', total: '2', free: '1', largest: '1', most: '1' }
    ],
    nodes: 2,
    project: 'vision',
    projects: ['vision'],
    resource_groups: ['default'],
    limits: [],
    ...changes
  };
}

export function makeFolder(name: string, changes: Partial<Folder> = {}): Folder {
  return {
    id: `id-of-${name}`,
    name,
    host: 'local',
    project: null,
    usage_mode: 'general',
    permission: 'rw',
    cloneable: false,
    max_size: '-1',
    max_files: null,
    unmanaged_path: '',
    ownership_type: 'user',
    user: 'mina',
    domain: 'default',
    creator: 'mina',
    status: 'ready',
    status_changed_at: null,
    status_reason: '',
    access: 'rw',
    is_owner: true,
    mounted_by: 0,
    used_bytes: 0,
    used_files: 0,
    scanned_at: null,
    last_used_at: null,
    trashed_at: null,
    purge_at: null,
    revision: 1,
    created_at: '2026-01-02T03:00:00Z',
    modified_at: '2026-01-02T03:00:00Z',
    ...changes
  };
}

export function makeMount(name: string, changes: Partial<Mount> = {}): Mount {
  return {
    folder_id: `id-of-${name}`,
    folder_name: name,
    host: 'local',
    scope: 'user-1',
    unmanaged_path: '',
    subpath: '',
    target: `/home/work/${name}`,
    permission: 'rw',
    automatic: false,
    ...changes
  };
}

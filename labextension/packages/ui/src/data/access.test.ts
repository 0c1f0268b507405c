import { describe, expect, test } from 'vitest';
import { makeFolder } from '../testing';
import { refuseFile, refuseFolder, type Asker } from './access';
import type { StorageHost } from './types';

const EVERYTHING = [
  'create-vfolder',
  'modify-vfolder',
  'delete-vfolder',
  'mount-in-session',
  'upload-file',
  'download-file',
  'invite-others',
  'set-user-specific-permission'
];

function host(without: string[] = [], state = 'ok'): StorageHost {
  return {
    name: 'local',
    is_default: true,
    state,
    permissions: EVERYTHING.filter(each => !without.includes(each)),
    capabilities: [],
    reason: '',
    since: null,
    used_percent: null,
    total_bytes: null,
    free_bytes: null
  };
}

const HOSTS = [host()];
const SOMEBODY: Asker = { superadmin: false, administers: false };
const ADMIN: Asker = { superadmin: true, administers: true };

describe('in a folder', () => {
  test('its owner does everything', () => {
    const mine = makeFolder('data');

    for (const deed of ['read', 'take', 'change', 'add', 'remove'] as const) {
      expect(refuseFile(deed, mine, HOSTS)).toBeNull();
    }
  });

  test('a reader only looks and takes copies', () => {
    const shared = makeFolder('data', { access: 'ro', is_owner: false });

    expect(refuseFile('take', shared, HOSTS)).toBeNull();
    expect(refuseFile('add', shared, HOSTS)).toBe('readOnly');
    expect(refuseFile('remove', shared, HOSTS)).toBe('readOnly');
  });

  test('who may write does not delete, unless that was given too', () => {
    const shared = makeFolder('data', { is_owner: false });

    expect(refuseFile('change', shared, HOSTS)).toBeNull();
    expect(refuseFile('remove', shared, HOSTS)).toBe('noDelete');
    expect(refuseFile('remove', { ...shared, access: 'wd' }, HOSTS)).toBeNull();
  });

  test('administrators do not look', () => {
    expect(refuseFile('read', makeFolder('data', { access: null }), HOSTS)).toBe('administers');
  });

  test('nothing is written that lies in the trash', () => {
    const thrown = makeFolder('data', { status: 'delete-pending' });

    expect(refuseFile('read', thrown, HOSTS)).toBeNull();
    expect(refuseFile('add', thrown, HOSTS)).toBe('inTrash');
  });

  test('the host decides what comes in and goes out', () => {
    const mine = makeFolder('data');

    expect(refuseFile('add', mine, [host(['upload-file'])])).toBe('hostUpload');
    expect(refuseFile('change', mine, [host(['upload-file'])])).toBeNull();
    expect(refuseFile('take', mine, [host(['download-file'])])).toBe('hostDownload');
    expect(refuseFile('read', mine, [host([], 'down')])).toBe('hostDown');
  });

  test('nothing is held against anybody before the hosts are known', () => {
    expect(refuseFile('add', makeFolder('data'), undefined)).toBeNull();
  });
});

describe('a folder', () => {
  test('is kept by its owner, as far as the host permits', () => {
    const mine = makeFolder('data', { cloneable: true });

    for (const deed of ['update', 'trash', 'purge', 'clone', 'invite'] as const) {
      expect(refuseFolder(deed, mine, HOSTS, SOMEBODY)).toBeNull();
    }
    expect(refuseFolder('trash', mine, [host(['delete-vfolder'])], SOMEBODY)).toBe(
      'hostDelete'
    );
    expect(refuseFolder('leave', mine, HOSTS, SOMEBODY)).toBe('own');
    expect(refuseFolder('transfer', mine, HOSTS, SOMEBODY)).toBe('superadmin');
  });

  test('tells its owner, who can change it, why there is no copy yet', () => {
    const mine = makeFolder('data', { cloneable: false });

    expect(refuseFolder('clone', mine, HOSTS, SOMEBODY)).toBe('ownNotCloneable');
  });

  test('is left, and no more, by those who share it', () => {
    const shared = makeFolder('data', { is_owner: false });

    expect(refuseFolder('leave', shared, HOSTS, SOMEBODY)).toBeNull();
    expect(refuseFolder('update', shared, HOSTS, SOMEBODY)).toBe('notOwner');
    expect(refuseFolder('invite', shared, HOSTS, SOMEBODY)).toBe('onlyOwner');
    expect(refuseFolder('clone', shared, HOSTS, SOMEBODY)).toBe('notCloneable');
  });

  test('of a project is nobody’s to leave or to invite to', () => {
    const ours = makeFolder('sets', { ownership_type: 'project', is_owner: false });

    expect(refuseFolder('leave', ours, HOSTS, SOMEBODY)).toBe('ofProject');
    expect(refuseFolder('invite', ours, HOSTS, ADMIN)).toBe('ofProject');
    expect(refuseFolder('share', ours, HOSTS, ADMIN)).toBeNull();
  });

  test('that sessions have is not thrown away, by nobody', () => {
    const used = makeFolder('data', { status: 'mounted' });

    expect(refuseFolder('trash', used, HOSTS, SOMEBODY)).toBe('mounted');
    expect(refuseFolder('trash', used, HOSTS, ADMIN)).toBe('mounted');
  });

  test('that comes by itself is neither shared nor given away', () => {
    const dotted = makeFolder('.cache');

    expect(refuseFolder('invite', dotted, HOSTS, SOMEBODY)).toBe('dotFolder');
    expect(refuseFolder('transfer', dotted, HOSTS, ADMIN)).toBe('dotFolder');
  });
});

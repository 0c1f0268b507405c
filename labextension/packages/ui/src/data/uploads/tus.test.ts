import { describe, expect, test } from 'vitest';
import type { SendOptions } from './queue';
import { fingerprint, mayPass, reachable } from './tus';

function options(changes: Partial<SendOptions> = {}): SendOptions {
  const nothing = (): void => undefined;
  return {
    to: { folderId: 'f', folder: 'data', path: 'in' },
    path: 'a.bin',
    file: new File(['x'], 'a.bin', { lastModified: 7 }),
    conflict: 'fail',
    onProgress: nothing,
    onStored: nothing,
    onClash: nothing,
    onFailed: nothing,
    ...changes
  };
}

describe('trying again', () => {
  test.each([0, 429, 502, 503, 504])('may help after %d', status => {
    expect(mayPass(status, 'PATCH')).toBe(true);
  });

  test.each([401, 403, 404, 413, 422, 507])('does not help after %d', status => {
    expect(mayPass(status, 'PATCH')).toBe(false);
  });

  test('helps where somebody was at another place, not where a name is taken', () => {
    expect(mayPass(409, 'PATCH')).toBe(true);
    expect(mayPass(409, 'POST')).toBe(false);
  });
});

describe('a file on its way', () => {
  const file = new File(['x'], 'a.bin', { lastModified: 7 });
  const known = fingerprint(file, options());

  test('is known again after the page was loaded again', () => {
    expect(fingerprint(new File(['x'], 'a.bin', { lastModified: 7 }), options())).toBe(known);
  });

  test('is another one at another place, or of another content', () => {
    const elsewhere = { folderId: 'f', folder: 'data', path: 'out' };
    const others = [
      fingerprint(file, options({ to: elsewhere })),
      fingerprint(file, options({ path: 'b/a.bin' })),
      fingerprint(file, options({ conflict: 'replace' })),
      fingerprint(new File(['xy'], 'a.bin', { lastModified: 7 }), options())
    ];

    expect(new Set([known, ...others]).size).toBe(5);
  });
});

describe('where an upload is', () => {
  const addressOf = (path: string): string => `/user/mina/backendai${path}`;

  test('is told as this page reaches it, whoever has answered', () => {
    const told = 'https://hub.example/services/backendai/api/uploads/01-ab';

    expect(reachable(told, addressOf)).toBe('/user/mina/backendai/api/uploads/01-ab');
  });

  test('is nowhere else', () => {
    expect(reachable('https://elsewhere.example/steal', addressOf)).toBe('');
    expect(reachable('/api/uploads/a/../b', addressOf)).toBe('');
  });
});

/** Password accounts: not everybody has one, where another login lets people in. */
import { ApiError, type Schemas } from '@backendai/api';
import { queryOptions } from '@tanstack/react-query';
import type { Host } from '../host';
import { ask } from './client';

export const accountKey = (name: string) => ['account', name] as const;

/** Null for who has no password account. */
export const accountQuery = (host: Host, name: string) =>
  queryOptions({
    queryKey: accountKey(name),
    queryFn: async ({ signal }): Promise<Schemas['AccountState'] | null> => {
      try {
        const path = `/api/accounts/${encodeURIComponent(name)}/state`;
        return await ask(host, 'GET', path, { signal });
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) {
          return null;
        }
        throw error;
      }
    },
    enabled: host.visible && name !== ''
  });

/** What a field may refer to, from the service. */
import { queryOptions } from '@tanstack/react-query';
import type { Host } from '../host';
import { ask, listNouns, nounKeys, type NounPage } from './client';
import type { NounName } from './noun';

/** So many are offered as a list; of more, those that one types are looked for. */
export const MOST_CHOICES = 100;

type Asked = NounName | 'agents' | 'storage-hosts';

export const choicesQuery = (
  host: Host,
  noun: Asked,
  search: string,
  filters: Record<string, string> = {}
) =>
  queryOptions({
    queryKey: [...nounKeys.choices(noun, search), filters],
    queryFn: async ({ signal }): Promise<NounPage> => {
      if (noun === 'storage-hosts') {
        const items = await ask<NounPage['items']>(host, 'GET', '/api/storage-hosts', {
          signal
        });
        return { items, next: null };
      }
      const order = noun === 'slot-types' ? 'rank' : 'name';
      const query = { limit: MOST_CHOICES, order, ...filters, ...(search ? { search } : {}) };
      return listNouns(host, noun, query, signal);
    },
    staleTime: 30_000,
    enabled: host.visible
  });

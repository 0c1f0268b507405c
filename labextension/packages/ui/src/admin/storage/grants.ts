/** Who permits what on a storage host. */
import { queryOptions } from '@tanstack/react-query';
import type { Host } from '../../host';
import { listNouns, nounKeys } from '../../nouns/client';
import type { AnyRow } from '../../nouns/noun';

export const GIVERS = ['domains', 'projects', 'keypair-policies'] as const;
export type Giver = (typeof GIVERS)[number];

/** Rows asked for at a time: the most that the service gives. */
const AT_A_TIME = 200;

export interface Grant {
  by: Giver;
  name: string;
  domain: string | undefined;
  isActive: boolean;
  permissions: readonly string[];
}

/** Everything of a kind that may permit something; there are few of these. */
export const giversQuery = (host: Host, by: Giver) =>
  queryOptions({
    queryKey: [...nounKeys.all(by), 'permits'],
    queryFn: async ({ signal }): Promise<AnyRow[]> => {
      const rows: AnyRow[] = [];
      let after: string | null = '';
      while (after !== null) {
        const query = { limit: AT_A_TIME, order: 'name', ...(after ? { after } : {}) };
        const page = await listNouns(host, by, query, signal);
        rows.push(...page.items);
        // A cursor that does not move would go on for ever.
        after = page.next === after ? null : (page.next ?? null);
      }
      return rows;
    },
    enabled: host.visible
  });

/** What these permit on the storage host called *name*; not those that permit nothing. */
export function readGrants(by: Giver, rows: readonly AnyRow[], name: string): Grant[] {
  return rows.flatMap(row => {
    const given = row as unknown as {
      name: string;
      domain?: string;
      is_active?: boolean;
      allowed_vfolder_hosts: Record<string, string[]>;
    };
    const permissions = given.allowed_vfolder_hosts[name] ?? [];
    const { domain, is_active: isActive = true } = given;
    return permissions.length ? [{ by, name: given.name, domain, isActive, permissions }] : [];
  });
}

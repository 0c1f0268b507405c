/** Who looks at the pages about data, and what storage hosts permit them. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { administers, isSuperadmin } from '../pages/page';
import { meQuery } from '../queries';
import type { Asker, Reason } from './access';
import { hostsQuery } from './queries';
import type { StorageHost } from './types';

export interface Rights {
  asker: Asker;
  hosts: readonly StorageHost[] | undefined;
  name: string;
  projects: readonly string[];
}

const NOBODY: Asker = { superadmin: false, administers: false };

export function useRights(): Rights {
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const hosts = useQuery(hostsQuery(host)).data;
  const asker = me ? { superadmin: isSuperadmin(me), administers: administers(me) } : NOBODY;
  return { asker, hosts, name: me?.name ?? '', projects: me?.projects ?? [] };
}

/** Says why something is not possible; undefined where it is. */
export function useWhy(): (reason: Reason | null) => string | undefined {
  const { t } = useTranslation();
  return reason => (reason ? t(`why.${reason}`) : undefined);
}

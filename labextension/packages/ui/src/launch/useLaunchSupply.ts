/** What the launch page chooses from, and whom it asks, over the service's own API. */
import { unwrap } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { useHost } from '../host';
import { resourcesQuery } from '../queries';
import type { Supply } from './supply';
import type { FindFolders } from './useFolders';

const ROWS = 20;
/** Folders in other states cannot be mounted now. */
const MOUNTABLE = 'ready,performing,cloning,mounted';

export function useLaunchSupply() {
  const host = useHost();
  const resources = useQuery(resourcesQuery(host));
  const presets = useQuery({
    queryKey: ['presets', 'check'],
    queryFn: ({ signal }) => unwrap(host.api.GET('/api/presets/check', { signal })),
    enabled: host.visible,
    staleTime: 10_000
  });
  const { data: offered } = resources;
  const { data: checked, isPending } = presets;
  const supply = useMemo<Supply | null>(
    () =>
      offered && !isPending
        ? {
            ...offered,
            presets: checked?.presets ?? [],
            groups: checked?.resource_groups ?? []
          }
        : null,
    [offered, checked, isPending]
  );
  return { supply, error: resources.error, retry: () => void resources.refetch() };
}

/** Folders as the launch form looks for them. */
export function useFindFolders(): FindFolders {
  const { api } = useHost();
  return useCallback<FindFolders>(
    async ({ search, after, folders }, signal) => {
      if (folders) {
        const found = await Promise.all(
          folders.map(reference =>
            unwrap(
              api.GET('/api/folders/{reference}', { params: { path: { reference } }, signal })
            ).catch(() => null)
          )
        );
        return { items: found.filter(each => each !== null), next: null };
      }
      const query = {
        limit: ROWS,
        order: 'name',
        status: MOUNTABLE,
        ...(search ? { search } : {}),
        ...(after ? { after } : {})
      };
      return unwrap(api.GET('/api/folders', { params: { query }, signal }));
    },
    [api]
  );
}

/** Asks for pages of folders, as a list wants them. */
import { unwrap } from '@backendai/api';
import type { Host } from '../../host';
import type { ListView, Page } from '../../lists';
import type { Folder } from '../types';
import { comesByItself } from '../words';

export type Shelf = 'active' | 'trash';

const STATUSES: Record<Shelf, string> = {
  active: 'ready,performing,cloning,mounted,error',
  trash: 'delete-pending,delete-ongoing,delete-error,delete-complete'
};

/** Those that come into sessions by themselves are told by their names alone. */
export const AUTOMATIC = 'automatic';
const PASSED = ['host', 'user', 'project', 'ownership_type'] as const;

export async function loadFolders(
  { api }: Pick<Host, 'api'>,
  shelf: Shelf,
  view: ListView,
  signal: AbortSignal
): Promise<Page<Folder>> {
  const { filters, order, search, limit } = view;
  const automatic = filters.mode === AUTOMATIC;
  const query = {
    order,
    limit,
    status: STATUSES[shelf],
    ...Object.fromEntries(PASSED.flatMap(key => (filters[key] ? [[key, filters[key]]] : []))),
    ...(filters.mode && !automatic ? { usage_mode: filters.mode } : {}),
    ...(search ? { search } : automatic ? { search: '.' } : {})
  };
  const ask = async (after: string): Promise<Page<Folder>> =>
    unwrap(
      api.GET('/api/folders', {
        params: { query: { ...query, ...(after ? { after } : {}) } },
        signal
      })
    );
  let page = await ask(view.after);
  if (!automatic) {
    return page;
  }
  const found = page.items.filter(comesByItself);
  while (found.length < limit && page.next !== null) {
    page = await ask(page.next);
    found.push(...page.items.filter(comesByItself));
  }
  return { items: found, next: page.next };
}

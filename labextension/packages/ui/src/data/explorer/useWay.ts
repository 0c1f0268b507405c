/** What the explorer shows, as its address says it: place, order, and what is beside it. */
import { useQueryText } from '../../address';
import { useHost } from '../../host';
import type { EntriesView } from '../queries';
import type { Sorting } from '../types';
import { SIDES, type Side } from './SidePanel';

const SORTS: readonly Sorting[] = ['kind', 'name', 'size', 'modified'];

export interface Way {
  view: EntriesView;
  /** The file that is looked at, by its name; empty for none. */
  show: string;
  side: Side | null;
  /** Go where some of it is another; an empty text is left out of the address. */
  go(change: Partial<Record<'path' | 'show' | 'side' | 'sort' | 'search', string>>): void;
}

export function useWay(folderId: string): Way {
  const host = useHost();
  const search = useQueryText();
  const query = new URLSearchParams(search);
  const read = (name: string): string => query.get(name) ?? '';
  const order = read('sort');
  const sort = SORTS.find(each => each === order.replace(/^-/, '')) ?? 'kind';
  return {
    view: {
      path: read('path').replace(/^\/+|\/+$/g, ''),
      sort,
      descending: order.startsWith('-'),
      search: read('search')
    },
    show: read('show'),
    side: SIDES.find(each => each === read('side')) ?? null,
    go: change => {
      const next = new URLSearchParams(search);
      for (const [name, value] of Object.entries(change)) {
        if (value) {
          next.set(name, value);
        } else {
          next.delete(name);
        }
      }
      const text = next.toString();
      host.open(`/data/${folderId}${text ? `?${text}` : ''}`);
    }
  };
}

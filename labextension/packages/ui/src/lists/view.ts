/** What of a list is shown, and how that is written in an address. */

export interface ListView {
  search: string;
  /** Only what is set: `{ status: 'RUNNING' }`. */
  filters: Record<string, string>;
  /** A name the service sorts by, with a `-` before it for the other way round. */
  order: string;
  /** The cursor this page begins after; empty for the first page. */
  after: string;
  limit: number;
}

/** Names in an address that are no filters. */
const OWN = ['search', 'order', 'after'] as const;

interface Defaults {
  order: string;
  limit: number;
  /** The keys of the filters; everything else in the address belongs to the page. */
  filters: readonly string[];
}

export function readView(address: URLSearchParams, defaults: Defaults): ListView {
  const filters: Record<string, string> = {};
  for (const key of defaults.filters) {
    const value = address.get(key);
    if (value) {
      filters[key] = value;
    }
  }
  return {
    search: address.get('search') ?? '',
    filters,
    order: address.get('order') ?? defaults.order,
    after: address.get('after') ?? '',
    limit: defaults.limit
  };
}

/** The address of *view*: what another list or tab has put there stays. */
export function writeView(
  address: URLSearchParams,
  view: ListView,
  defaults: Defaults
): URLSearchParams {
  const next = new URLSearchParams(address);
  [...OWN, ...defaults.filters].forEach(key => next.delete(key));
  const parts: [string, string | undefined][] = [
    ['search', view.search.trim()],
    ...defaults.filters.map((key): [string, string | undefined] => [key, view.filters[key]]),
    ['order', view.order === defaults.order ? '' : view.order],
    ['after', view.after]
  ];
  for (const [key, value] of parts) {
    if (value) {
      next.set(key, value);
    }
  }
  return next;
}

export type Change = Partial<Omit<ListView, 'filters'>> & {
  /** An empty value takes a filter away. */
  filters?: Record<string, string>;
};

/** Change *view*: whatever says which rows there are leads back to the first page. */
export function changed(view: ListView, change: Change): ListView {
  const { filters, ...rest } = change;
  const merged = { ...view.filters, ...filters };
  const kept = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== ''));
  return { ...view, after: '', ...rest, filters: kept };
}

/** Which filters stand in the list's own bar. */
type Own = readonly { key: string; outside?: boolean }[];

/** Whether the search or a filter of the list's own bar says which rows are shown. */
export function isNarrowed(view: ListView, filters: Own): boolean {
  const own = filters.some(({ key, outside }) => !outside && view.filters[key]);
  return view.search.trim() !== '' || own;
}

/** Take away what {@link isNarrowed} tells of, and keep what the page has chosen. */
export function widened(view: ListView, filters: Own): ListView {
  const outside = filters.filter(filter => filter.outside).map(filter => filter.key);
  const kept = Object.entries(view.filters).filter(([key]) => outside.includes(key));
  return { ...view, search: '', filters: Object.fromEntries(kept), after: '' };
}

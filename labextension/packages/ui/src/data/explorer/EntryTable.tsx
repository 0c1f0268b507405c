/**
 * What is in one place of a folder: of however many rows, those in sight are there.
 *
 * All rows are equally high, so that what is above and below them is known.
 */
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Checkbox } from '../../kit/Checkbox';
import type { EntriesView } from '../queries';
import type { FileEntry, Sorting } from '../types';
import type { Entries } from './useEntries';

/** In pixels, as `data.css` has it. */
export const ROW = 44;
const BEYOND = 12;
/** Where nothing is laid out, as in tests. */
const LEAST = 40;

interface Props {
  caption: string;
  entries: Entries;
  view: EntriesView;
  selected: ReadonlySet<string>;
  onSort(sort: Sorting, descending: boolean): void;
  onSelectAll(all: boolean): void;
  row(entry: FileEntry, at: number): ReactNode;
}

export function EntryTable(props: Props): JSX.Element {
  const { caption, entries, view, selected, onSort, onSelectAll, row } = props;
  const { t } = useTranslation();
  const items = entries.items ?? [];
  const box = useRef<HTMLDivElement>(null);
  const [from, to] = useWindow(box, items.length);
  const { hasMore, loadMore } = entries;
  const nearEnd = to >= items.length - BEYOND;
  useEffect(() => {
    if (nearEnd && hasMore) {
      loadMore();
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- asked once for each page
  }, [nearEnd, hasMore, items.length]);
  const chosen = items.filter(entry => selected.has(entry.name)).length;
  return (
    <div
      ref={box}
      className="bai-entries"
      aria-busy={entries.busy}
      onKeyDown={walk}
      role="presentation"
    >
      <table aria-label={caption} aria-rowcount={entries.total + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" data-column="select">
              <Checkbox
                quiet
                label={t('files.selectAll')}
                checked={items.length > 0 && chosen === items.length}
                partly={chosen > 0 && chosen < items.length}
                onChange={onSelectAll}
              />
            </th>
            <SortHeader column="name" sort="kind" {...{ view, onSort }} />
            <SortHeader column="size" sort="size" {...{ view, onSort }} />
            <SortHeader column="modified" sort="modified" {...{ view, onSort }} />
            <th scope="col" data-column="actions">
              <span className="bai-hidden">{t('files.actions')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <Gap rows={from} />
          {items.slice(from, to).map((entry, at) => row(entry, from + at))}
          <Gap rows={items.length - to} />
        </tbody>
      </table>
    </div>
  );
}

function Gap({ rows }: { rows: number }): JSX.Element | null {
  return rows > 0 ? (
    <tr aria-hidden className="bai-gap">
      <td style={{ height: `${rows * ROW}px` }} />
    </tr>
  ) : null;
}

interface HeaderProps {
  column: 'name' | 'size' | 'modified';
  sort: Sorting;
  view: EntriesView;
  onSort(sort: Sorting, descending: boolean): void;
}

function SortHeader({ column, sort, view, onSort }: HeaderProps): JSX.Element {
  const { t } = useTranslation();
  const title = t(`files.${column}`);
  const active = view.sort === sort || (column === 'name' && view.sort === 'name');
  const state = !active ? 'none' : view.descending ? 'descending' : 'ascending';
  const Icon = { ascending: ArrowUp, descending: ArrowDown, none: ChevronsUpDown }[state];
  return (
    <th scope="col" aria-sort={state} data-column={column}>
      <button
        type="button"
        className="bai-sort"
        title={t('sessions.sortBy', { title })}
        // Folders come first only where the order is that of the alphabet.
        onClick={() =>
          state === 'ascending'
            ? onSort(sort === 'kind' ? 'name' : sort, true)
            : onSort(sort, false)
        }
      >
        {title}
        <Icon size={14} aria-hidden />
      </button>
    </th>
  );
}

/** The first row in sight and the one after the last, with some beyond them. */
function useWindow(
  box: React.RefObject<HTMLDivElement>,
  count: number
): readonly [from: number, to: number] {
  const [place, setPlace] = useState({ top: 0, height: 0 });
  useEffect(() => {
    const element = box.current;
    if (!element) {
      return undefined;
    }
    const look = (): void =>
      setPlace(old => {
        const { scrollTop: top, clientHeight: height } = element;
        const same = Math.abs(old.top - top) < (ROW * BEYOND) / 2 && old.height === height;
        return same ? old : { top, height };
      });
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, [box]);
  const from = Math.min(Math.max(0, Math.floor(place.top / ROW) - BEYOND), count);
  const visible = Math.max(LEAST, Math.ceil(place.height / ROW) + 2 * BEYOND);
  return [from, Math.min(count, from + visible)];
}

/** Up and down from row to row, on what names them. */
function walk(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const target = event.target as HTMLElement;
  const here = target.closest('tr');
  if (!step || !here || target.tagName === 'INPUT') {
    return;
  }
  let next: Element | null = here;
  do {
    next = step > 0 ? next.nextElementSibling : next.previousElementSibling;
  } while (next?.matches('.bai-gap'));
  const link = next?.querySelector<HTMLElement>('[data-column="name"] :is(a, button)');
  if (link) {
    event.preventDefault();
    link.focus();
    link.scrollIntoView({ block: 'nearest' });
  }
}

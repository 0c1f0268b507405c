/** A list of things with everything around it: narrowing, choosing, paging, exporting. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { SearchX } from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { DataTable, type Selecting } from '../kit/DataTable';
import { EmptyState, Skeleton } from '../kit/States';
import { LoadError } from '../LoadError';
import { usePolling } from '../stream';
import { BulkBar } from './BulkBar';
import { useColumns } from './columns';
import { listKey, type ListColumn, type ListOf, type Page } from './list';
import { Pager } from './Pager';
import { Toolbar } from './Toolbar';
import { goOn, pageBefore, pageNumber } from './trail';
import { useSelection, type Selection } from './useSelection';
import { useView, type Viewing } from './useView';
import { isNarrowed, widened } from './view';

interface Props<Row> {
  list: ListOf<Row>;
  /** What else the page has to choose, before the search box. */
  beside?: ReactNode;
}

const NOTHING: never[] = [];

export function NounList<Row>({ list, beside }: Props<Row>): JSX.Element {
  const host = useHost();
  const polling = usePolling();
  const viewing = useView(list.order, list.filters);
  const { view, change } = viewing;
  const columns = useColumns(list);
  const [trail, setTrail] = useState<string[]>([]);
  const query = useQuery<Page<Row>>({
    queryKey: list.queryKey?.(view) ?? [...listKey(list.name), view],
    queryFn: ({ signal }) => list.load(view, signal),
    placeholderData: keepPreviousData,
    refetchInterval: list.followed ? polling : false,
    enabled: host.visible && (list.enabled ?? true)
  });
  const page = query.data;
  const { onRows } = list;
  const items = page?.items;
  useEffect(() => {
    if (items) {
      onRows?.(items);
    }
  }, [items, onRows]);
  const selection = useSelection<Row>(list.rowKey, page?.items ?? NOTHING);
  return (
    <div className="bai-list">
      <Toolbar
        list={list}
        viewing={viewing}
        columns={columns}
        beside={beside}
        refreshing={query.isFetching}
        updatedAt={query.dataUpdatedAt}
        onRefresh={() => void query.refetch()}
      />
      {query.error ? (
        <LoadError
          error={query.error}
          stale={page !== undefined}
          onRetry={() => void query.refetch()}
        />
      ) : null}
      {page ? (
        <div aria-busy={query.isPlaceholderData} className="bai-list-rows">
          <Rows
            list={list}
            columns={columns.shown}
            rows={page.items}
            viewing={viewing}
            selection={selection}
          />
        </div>
      ) : null}
      {!page && !query.error ? <Waiting /> : null}
      <BulkBar list={list} selection={selection} />
      {page && (page.next !== null || view.after || page.items.length) ? (
        <Pager
          page={pageNumber(trail, view.after)}
          first={view.after === ''}
          last={page.next === null}
          size={view.limit}
          onSize={limit => change({ limit })}
          onPrevious={() => change({ after: pageBefore(trail, view.after) })}
          onNext={() => {
            if (page.next !== null) {
              setTrail(goOn(trail, view.after, page.next));
              change({ after: page.next });
            }
          }}
        />
      ) : null}
    </div>
  );
}

function Waiting(): JSX.Element {
  const { t } = useTranslation();
  return <Skeleton rows={6} label={t('state.loading')} />;
}

interface RowsProps<Row> {
  list: ListOf<Row>;
  columns: ListColumn<Row>[];
  rows: Row[];
  viewing: Viewing;
  selection: Selection<Row>;
}

function Rows<Row>({ list, columns, rows, viewing, selection }: RowsProps<Row>): JSX.Element {
  const { t } = useTranslation();
  const { view, change } = viewing;
  if (rows.length === 0) {
    return <Nothing list={list} viewing={viewing} />;
  }
  const { actions, dimmed } = list;
  const all = actions
    ? [
        ...columns,
        {
          key: 'actions',
          title: t('list.actions'),
          quiet: true,
          align: 'end' as const,
          cell: actions
        }
      ]
    : columns;
  const selecting: Selecting<Row> = {
    has: selection.has,
    toggle: selection.toggle,
    toggleAll: () => selection.toggleAll(rows),
    label: row => t('list.choose', { name: list.rowName(row) }),
    labelAll: t('list.chooseAll')
  };
  return (
    <div className="bai-card bai-table-card">
      <DataTable
        caption={list.caption}
        columns={all}
        rows={rows}
        rowKey={list.rowKey}
        order={view.order}
        onOrder={order => change({ order })}
        sortLabel={title => t('list.sortBy', { title })}
        selecting={list.bulk?.length ? selecting : undefined}
        {...(dimmed ? { dimmed } : {})}
      />
    </div>
  );
}

function Nothing<Row>({ list, viewing }: { list: ListOf<Row>; viewing: Viewing }): JSX.Element {
  const { t } = useTranslation();
  const { view, replace } = viewing;
  if (view.after) {
    return <p className="bai-nothing">{t('list.emptyPage')}</p>;
  }
  if (isNarrowed(view, list.filters)) {
    return (
      <EmptyState
        icon={<SearchX size={32} />}
        title={t('list.noMatchTitle')}
        text={t('list.noMatchText')}
        action={
          <Button onClick={() => replace(widened(view, list.filters))}>
            {t('list.clear')}
          </Button>
        }
      />
    );
  }
  return <EmptyState {...list.empty} />;
}

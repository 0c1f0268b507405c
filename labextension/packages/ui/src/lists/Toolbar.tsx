import { Columns3, RefreshCw, RotateCcw, Search, X } from 'lucide-react';
import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button, IconButton } from '../kit/Button';
import { CheckMenu } from '../kit/CheckMenu';
import { exactly } from '../times';
import type { Columns } from './columns';
import { ExportButton } from './ExportButton';
import { FilterFields } from './FilterFields';
import type { ListOf } from './list';
import { SavedViews } from './SavedViews';
import type { Viewing } from './useView';
import { isNarrowed, widened } from './view';

interface Props<Row> {
  list: ListOf<Row>;
  viewing: Viewing;
  columns: Columns<Row>;
  beside?: ReactNode;
  refreshing: boolean;
  updatedAt: number;
  onRefresh(): void;
}

/** Everything that says which rows are shown and how. */
export function Toolbar<Row>(props: Props<Row>): JSX.Element {
  const { t } = useTranslation();
  const { list, viewing, columns, beside } = props;
  const { view, change, replace } = viewing;
  return (
    <div className="bai-list-bar">
      {beside ? <div className="bai-list-beside">{beside}</div> : null}
      <div role="search" className="bai-list-narrow" aria-label={t('list.narrow')}>
        {list.searches === undefined ? null : (
          <SearchBox
            label={list.searches}
            value={view.search}
            onChange={search => change({ search })}
          />
        )}
        <FilterFields
          filters={list.filters}
          values={view.filters}
          onChange={(key, value) => change({ filters: { [key]: value } })}
        />
        {isNarrowed(view, list.filters) ? (
          <Button
            kind="quiet"
            size="small"
            icon={<X size={14} aria-hidden />}
            onClick={() => replace(widened(view, list.filters))}
          >
            {t('list.clear')}
          </Button>
        ) : null}
      </div>
      <div className="bai-list-tools">
        <Refresh {...props} />
        {list.filters.length || list.searches !== undefined ? (
          <SavedViews
            name={list.name}
            viewing={viewing}
            narrowed={isNarrowed(view, list.filters)}
          />
        ) : null}
        <CheckMenu
          label={t('list.columns')}
          icon={<Columns3 size={16} aria-hidden />}
          entries={columns.optional.map(column => ({
            key: column.key,
            text: column.title,
            checked: columns.isShown(column.key)
          }))}
          onToggle={columns.toggle}
        />
        {columns.reset ? (
          <IconButton label={t('list.columnsReset')} onClick={columns.reset}>
            <RotateCcw size={16} aria-hidden />
          </IconButton>
        ) : null}
        {list.columns.some(column => column.csv) ? (
          <ExportButton list={list} view={view} />
        ) : null}
      </div>
    </div>
  );
}

function Refresh<Row>({ refreshing, updatedAt, onRefresh }: Props<Row>): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const moment = updatedAt ? exactly(new Date(updatedAt).toISOString(), language) : '–';
  return (
    <IconButton label={t('list.refresh', { moment })} onClick={onRefresh}>
      <RefreshCw size={16} aria-hidden className={refreshing ? 'bai-spin' : ''} />
    </IconButton>
  );
}

/** Typing searches by itself, as soon as one pauses. */
const PAUSE = 250;

function SearchBox({
  label,
  value,
  onChange
}: {
  label: string;
  value: string;
  onChange(value: string): void;
}): JSX.Element {
  const [text, setText] = useState(value);
  const id = useId();
  const send = useRef(onChange);
  const sent = useRef(value);
  useEffect(() => {
    send.current = onChange;
  });
  useEffect(() => {
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text.trim() === sent.current) {
      return undefined;
    }
    const timer = setTimeout(() => send.current(text.trim()), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span className="bai-search">
      <label htmlFor={id} className="bai-hidden">
        {label}
      </label>
      <Search size={16} aria-hidden />
      <input
        id={id}
        type="search"
        placeholder={label}
        value={text}
        autoComplete="off"
        spellCheck={false}
        onChange={event => setText(event.target.value)}
        onKeyDown={event => event.key === 'Enter' && onChange(text.trim())}
      />
    </span>
  );
}

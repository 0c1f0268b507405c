/** Parts of one page, of which one is shown at a time. */
import { useId, useRef, type KeyboardEvent, type ReactNode } from 'react';

export interface Tab<Key extends string> {
  key: Key;
  text: string;
  icon?: ReactNode;
  /** How many things are in it, where that is known. */
  count?: number | undefined;
}

interface Props<Key extends string> {
  /** What the tabs are parts of, for screen readers. */
  label: string;
  tabs: readonly Tab<Key>[];
  value: Key;
  onChange(key: Key): void;
  /** What the chosen tab shows. */
  children?: ReactNode;
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

/** Arrow keys choose among the tabs; the Tab key goes on into what is shown. */
export function Tabs<Key extends string>(props: Props<Key>): JSX.Element {
  const { label, tabs, value, onChange, children } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(tab => tab.key === value);
    const target = { Home: 0, End: tabs.length - 1 }[event.key] ?? at + (STEPS[event.key] ?? 0);
    const next = tabs[(target + tabs.length) % tabs.length];
    if (!next || (target === at && !['Home', 'End'].includes(event.key))) {
      return;
    }
    event.preventDefault();
    onChange(next.key);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.key}"]`)?.focus();
  };
  return (
    <>
      <div ref={list} role="tablist" aria-label={label} className="bai-tabs">
        {tabs.map(tab => (
          <button
            key={tab.key}
            type="button"
            role="tab"
            id={`${id}-${tab.key}`}
            data-tab={tab.key}
            aria-selected={tab.key === value}
            aria-controls={children === undefined ? undefined : `${id}-panel`}
            tabIndex={tab.key === value ? 0 : -1}
            onClick={() => onChange(tab.key)}
            onKeyDown={move}
          >
            {tab.icon}
            {tab.text}
            {tab.count === undefined ? null : <span className="bai-count">{tab.count}</span>}
          </button>
        ))}
      </div>
      {children === undefined ? null : (
        <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>
          {children}
        </div>
      )}
    </>
  );
}

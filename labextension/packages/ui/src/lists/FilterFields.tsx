import { useEffect, useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { plain } from '../kit/Field';
import type { Filter } from './list';

interface Props {
  filters: readonly Filter[];
  values: Record<string, string>;
  onChange(key: string, value: string): void;
}

/** One small field for each filter; those that narrow the list stand out. */
export function FilterFields({ filters, values, onChange }: Props): JSX.Element {
  return (
    <>
      {filters
        .filter(filter => !filter.outside)
        .map(filter => {
          const value = values[filter.key] ?? '';
          const change = (next: string): void => onChange(filter.key, next);
          return filter.options ? (
            <Choice key={filter.key} filter={filter} value={value} onChange={change} />
          ) : (
            <Typed key={filter.key} filter={filter} value={value} onChange={change} />
          );
        })}
    </>
  );
}

interface FieldProps {
  filter: Filter;
  value: string;
  onChange(value: string): void;
}

function Choice({ filter, value, onChange }: FieldProps): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  return (
    <span className="bai-filter" data-set={value ? '' : undefined}>
      <label htmlFor={id}>{filter.title}</label>
      <select id={id} value={value} onChange={event => onChange(event.target.value)}>
        <option value="">{t('list.any')}</option>
        {filter.options?.map(option => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </span>
  );
}

/** Sent when one leaves it, presses Enter or takes a suggestion. */
function Typed({ filter, value, onChange }: FieldProps): JSX.Element {
  const { t } = useTranslation();
  const id = useId();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const send = (): void => {
    if (text.trim() !== value) {
      onChange(text.trim());
    }
  };
  return (
    <span className="bai-filter" data-set={value ? '' : undefined}>
      <label htmlFor={id}>{filter.title}</label>
      <input
        id={id}
        value={text}
        placeholder={t('list.any')}
        list={filter.suggestions ? plain(`${id}-list`) : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={event => {
          setText(event.target.value);
          if (filter.suggestions?.includes(event.target.value)) {
            onChange(event.target.value);
          }
        }}
        onBlur={send}
        onKeyDown={event => event.key === 'Enter' && send()}
      />
      {filter.suggestions ? (
        <datalist id={plain(`${id}-list`)}>
          {filter.suggestions.map(each => (
            <option key={each} value={each} />
          ))}
        </datalist>
      ) : null}
    </span>
  );
}

/** A labelled input with its help and its error below it. */
import { useId, type ReactNode } from 'react';
import { CircleAlert } from 'lucide-react';

interface Props {
  id?: string;
  label: string;
  value: string;
  onChange(value: string): void;
  onBlur?(): void;
  help?: ReactNode;
  error?: string | undefined;
  unit?: string | undefined;
  optional?: string | undefined;
  decimal?: boolean;
  type?: 'text' | 'password' | 'email' | 'search' | 'date' | 'datetime-local';
  /** What may be meant, offered while one types. */
  suggestions?: readonly string[] | undefined;
  autoComplete?: string;
  readOnly?: boolean;
  placeholder?: string | undefined;
  /** Drawn between the input and its help, such as a meter. */
  children?: ReactNode;
}

export function Field(props: Props): JSX.Element {
  const { label, value, onChange, onBlur, help, error, unit, optional, decimal } = props;
  const generated = useId();
  const id = props.id ?? generated;
  const described = [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(' ');
  return (
    <div className="bai-field" data-invalid={error ? '' : undefined}>
      <label htmlFor={id}>
        {label}
        {optional ? <span className="bai-optional"> {optional}</span> : null}
      </label>
      <span className="bai-input">
        <input
          id={id}
          type={props.type ?? 'text'}
          list={props.suggestions ? plain(`${id}-suggestions`) : undefined}
          readOnly={props.readOnly ?? false}
          inputMode={decimal ? 'decimal' : undefined}
          autoComplete={props.autoComplete ?? 'off'}
          spellCheck={false}
          value={value}
          placeholder={props.placeholder}
          aria-invalid={error ? true : undefined}
          aria-describedby={described || undefined}
          onChange={event => onChange(event.target.value)}
          onBlur={onBlur}
        />
        {unit ? <span className="bai-unit">{unit}</span> : null}
      </span>
      {props.suggestions ? (
        <datalist id={plain(`${id}-suggestions`)}>
          {props.suggestions.map(each => (
            <option key={each} value={each} />
          ))}
        </datalist>
      ) : null}
      {props.children}
      {error ? (
        <span id={`${id}-error`} className="bai-field-error">
          <CircleAlert size={14} aria-hidden /> {error}
        </span>
      ) : null}
      {help ? (
        <span id={`${id}-help`} className="bai-help">
          {help}
        </span>
      ) : null}
    </div>
  );
}

/** An id that needs no quoting: some look for a list by a selector. */
export const plain = (id: string): string => id.replaceAll(':', '');

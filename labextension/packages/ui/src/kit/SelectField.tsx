/** A labelled list to choose one of several from. */
import { useId, type ReactNode } from 'react';
import { CircleAlert } from 'lucide-react';

export interface Option {
  value: string;
  text: string;
}

interface Props {
  id?: string;
  label: string;
  value: string;
  options: readonly (string | Option)[];
  error?: string | undefined;
  optional?: string | undefined;
  help?: ReactNode;
  onChange(value: string): void;
}

export function SelectField(props: Props): JSX.Element {
  const { label, value, options, help, error, optional, onChange } = props;
  const generated = useId();
  const id = props.id ?? generated;
  const described = [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(' ');
  return (
    <div className="bai-field" data-invalid={error ? '' : undefined}>
      <label htmlFor={id}>
        {label}
        {optional ? <span className="bai-optional"> {optional}</span> : null}
      </label>
      <select
        id={id}
        value={value}
        aria-invalid={error ? true : undefined}
        aria-describedby={described || undefined}
        onChange={event => onChange(event.target.value)}
      >
        {options.map(asOption).map(option => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
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

function asOption(option: string | Option): Option {
  return typeof option === 'string' ? { value: option, text: option } : option;
}

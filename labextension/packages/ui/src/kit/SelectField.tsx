/** A labelled list to choose one of several from. */
import { useId, type ReactNode } from 'react';

interface Props {
  id?: string;
  label: string;
  value: string;
  options: readonly string[];
  help?: ReactNode;
  onChange(value: string): void;
}

export function SelectField(props: Props): JSX.Element {
  const { label, value, options, help, onChange } = props;
  const generated = useId();
  const id = props.id ?? generated;
  return (
    <div className="bai-field">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-describedby={help ? `${id}-help` : undefined}
        onChange={event => onChange(event.target.value)}
      >
        {options.map(option => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
      {help ? (
        <span id={`${id}-help`} className="bai-help">
          {help}
        </span>
      ) : null}
    </div>
  );
}

/** A labelled input of several lines. */
import { useId, type ReactNode } from 'react';
import { CircleAlert } from 'lucide-react';

interface Props {
  label: string;
  value: string;
  rows?: number;
  help?: ReactNode;
  error?: string | undefined;
  optional?: string | undefined;
  placeholder?: string;
  /** Code: every letter takes the same room. */
  code?: boolean;
  readOnly?: boolean;
  onChange?(value: string): void;
}

export function TextArea(props: Props): JSX.Element {
  const { label, value, rows = 4, help, error, optional, code = false } = props;
  const id = useId();
  const described = [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(' ');
  return (
    <div className="bai-field" data-invalid={error ? '' : undefined}>
      <label htmlFor={id}>
        {label}
        {optional ? <span className="bai-optional"> {optional}</span> : null}
      </label>
      <textarea
        id={id}
        className="bai-textarea"
        data-code={code ? '' : undefined}
        rows={rows}
        value={value}
        readOnly={props.readOnly ?? false}
        placeholder={props.placeholder}
        spellCheck={false}
        aria-invalid={error ? true : undefined}
        aria-describedby={described || undefined}
        onChange={event => props.onChange?.(event.target.value)}
      />
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

import { useEffect, useRef, type ReactNode } from 'react';

interface Props {
  label: ReactNode;
  checked: boolean;
  /** Some of what it stands for is chosen, and some is not. */
  partly?: boolean;
  /** Keep the label for screen readers only. */
  quiet?: boolean;
  disabled?: boolean;
  help?: ReactNode;
  onChange(checked: boolean): void;
}

export function Checkbox(props: Props): JSX.Element {
  const { label, checked, partly = false, quiet = false, disabled = false, help } = props;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (input.current) {
      input.current.indeterminate = partly;
    }
  }, [partly]);
  return (
    <label className="bai-checkbox" data-disabled={disabled ? '' : undefined}>
      <input
        ref={input}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={event => props.onChange(event.target.checked)}
      />
      <span className={quiet ? 'bai-hidden' : 'bai-checkbox-text'}>
        {label}
        {help ? <span className="bai-help">{help}</span> : null}
      </span>
    </label>
  );
}

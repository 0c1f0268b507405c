import { useId } from 'react';

interface Props<Value extends string> {
  label: string;
  value: Value;
  options: { value: Value; text: string }[];
  onChange(value: Value): void;
}

/** One of a few, all in sight: a radio group that looks like a row of buttons. */
export function Segmented<Value extends string>({
  label,
  value,
  options,
  onChange
}: Props<Value>): JSX.Element {
  const name = useId();
  return (
    <fieldset className="bai-segmented">
      <legend className="bai-hidden">{label}</legend>
      {options.map(option => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface Props {
  label: string;
  checked: boolean;
  onChange(checked: boolean): void;
}

export function Switch({ label, checked, onChange }: Props): JSX.Element {
  return (
    <label className="bai-switch">
      <input
        type="checkbox"
        role="switch"
        checked={checked}
        onChange={event => onChange(event.target.checked)}
      />
      <span aria-hidden className="bai-switch-track" />
      {label}
    </label>
  );
}

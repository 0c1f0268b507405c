interface Props {
  label: string;
  /** What is shown at the right and spoken: `25 of 32 GiB`. */
  text: string;
  value: number;
  max: number;
}

/** How much of something is in use. Colour only repeats what the text says. */
export function Meter({ label, text, value, max }: Props): JSX.Element {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  const tone = share >= 0.95 ? 'error' : share >= 0.8 ? 'warning' : 'primary';
  return (
    <div className="bai-meter">
      <span className="bai-meter-label">{label}</span>
      <span className="bai-meter-text">{text}</span>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(value, max)}
        aria-valuetext={text}
        className="bai-meter-track"
      >
        <span
          className={`bai-meter-fill bai-fill-${tone}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
    </div>
  );
}

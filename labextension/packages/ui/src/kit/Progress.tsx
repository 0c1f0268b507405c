interface Props {
  label: string;
  /** What is shown beside it and spoken: `12 of 300 files`. */
  text: string;
  value: number;
  /** Null where nobody knows how much there is to do. */
  max: number | null;
  tone?: 'primary' | 'success' | 'warning' | 'error';
  /** Keep the label and the text for screen readers only. */
  quiet?: boolean;
}

/** How far something is that takes a while. */
export function Progress(props: Props): JSX.Element {
  const { label, text, value, max, tone = 'primary', quiet = false } = props;
  const share = max === null ? null : max > 0 ? Math.min(1, value / max) : 0;
  const known =
    share === null ? {} : { 'aria-valuenow': Math.round(share * 100), 'aria-valuemax': 100 };
  return (
    <div className="bai-progress">
      {quiet ? null : (
        <>
          <span className="bai-progress-label">{label}</span>
          <span className="bai-progress-text">{text}</span>
        </>
      )}
      <span
        role="progressbar"
        aria-label={label}
        aria-valuetext={text}
        aria-valuemin={0}
        {...known}
        className="bai-meter-track"
        data-unknown={share === null ? '' : undefined}
      >
        <span
          className={`bai-meter-fill bai-fill-${tone}`}
          style={{ width: `${(share ?? 0.3) * 100}%` }}
        />
      </span>
    </div>
  );
}

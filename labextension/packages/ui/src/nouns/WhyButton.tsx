import { useId, type ComponentProps } from 'react';
import { Button } from '../kit/Button';

type Props = ComponentProps<typeof Button> & {
  /** Why it cannot be pressed now, in words; said beside it. */
  why?: string | undefined;
};

/** A button that says why nothing happens when it is pressed. */
export function WhyButton({ why, onClick, submits, ...rest }: Props): JSX.Element {
  const id = useId();
  if (!why) {
    return <Button {...rest} {...(submits ? { submits } : {})} onClick={onClick} />;
  }
  return (
    <span className="bai-why">
      <Button {...rest} aria-disabled aria-describedby={id} />
      <span id={id} className="bai-help">
        {why}
      </span>
    </span>
  );
}

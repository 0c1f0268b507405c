import { useEffect, useRef, useState, type ReactNode } from 'react';

/** So long it is shown, in milliseconds. */
const SHOWN_FOR = 6000;

interface Props {
  children: ReactNode;
  onClose(): void;
}

/** Says something for a moment, and for as long as somebody points at it or is in it. */
export function Toast({ children, onClose }: Props): JSX.Element {
  const [isHeld, setHeld] = useState(false);
  const close = useRef(onClose);
  useEffect(() => {
    close.current = onClose;
  });
  useEffect(() => {
    const timer = isHeld ? undefined : setTimeout(() => close.current(), SHOWN_FOR);
    return () => clearTimeout(timer);
  }, [isHeld]);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented) {
        close.current();
      }
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
  return (
    <div
      className="bai-toast-place"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      {children}
    </div>
  );
}

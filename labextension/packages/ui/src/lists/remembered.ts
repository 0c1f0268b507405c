/** Choices that this browser keeps for one person. */
import { useCallback, useEffect, useRef, useState } from 'react';

export function recall<Value>(key: string, otherwise: Value): Value {
  try {
    return read(localStorage.getItem(key), otherwise);
  } catch {
    return otherwise; // a browser that keeps nothing
  }
}

export function keep(key: string, value: unknown): void {
  const newValue = JSON.stringify(value);
  try {
    localStorage.setItem(key, newValue);
  } catch {
    // The choice still holds until the page is left.
  }
  // Browsers tell the other windows only, and JupyterLab has all its tabs in one.
  window.dispatchEvent(new StorageEvent('storage', { key, newValue }));
}

function read<Value>(text: string | null, otherwise: Value): Value {
  try {
    return text === null ? otherwise : (JSON.parse(text) as Value);
  } catch {
    return otherwise; // something of another version
  }
}

/**
 * State that is still there after a reload, and the same wherever it is shown.
 *
 * Lists would else be written as they were before another tab added to them.
 */
export function useRemembered<Value>(
  key: string,
  otherwise: Value
): [Value, (value: Value) => void] {
  const [value, setValue] = useState(() => recall(key, otherwise));
  const usual = useRef(otherwise);
  useEffect(() => {
    const hear = ({ key: changed, newValue }: StorageEvent): void => {
      if (changed === key) {
        setValue(read(newValue, usual.current));
      }
    };
    window.addEventListener('storage', hear);
    return () => window.removeEventListener('storage', hear);
  }, [key]);
  const change = useCallback((next: Value) => keep(key, next), [key]);
  return [value, change];
}

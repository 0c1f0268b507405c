/** Choices that this browser keeps for one person. */
import { useCallback, useState } from 'react';

export function recall<Value>(key: string, otherwise: Value): Value {
  try {
    const text = localStorage.getItem(key);
    return text === null ? otherwise : (JSON.parse(text) as Value);
  } catch {
    return otherwise; // a browser that keeps nothing, or something of another version
  }
}

export function keep(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The choice still holds until the page is left.
  }
}

/** State that is still there after a reload. */
export function useRemembered<Value>(
  key: string,
  otherwise: Value
): [Value, (value: Value) => void] {
  const [value, setValue] = useState(() => recall(key, otherwise));
  const change = useCallback(
    (next: Value) => {
      setValue(next);
      keep(key, next);
    },
    [key]
  );
  return [value, change];
}

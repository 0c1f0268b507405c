/** Choices that this browser keeps, for whoever uses it or for one person. */
import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useHost } from '../host';
import { meQuery } from '../queries';

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
  const usual = useRef(otherwise);
  const [held, setHeld] = useState(() => ({ key, value: recall(key, otherwise) }));
  // What is kept under another key is shown at once, and never beside this one's.
  const current = held.key === key ? held : { key, value: recall(key, otherwise) };
  if (current !== held) {
    setHeld(current);
  }
  useEffect(() => {
    const hear = ({ key: changed, newValue }: StorageEvent): void => {
      if (changed === key) {
        setHeld({ key, value: read(newValue, usual.current) });
      }
    };
    window.addEventListener('storage', hear);
    return () => window.removeEventListener('storage', hear);
  }, [key]);
  const change = useCallback((next: Value) => keep(key, next), [key]);
  return [current.value, change];
}

/**
 * The same, for nobody but the person who is logged in: others share the browser.
 *
 * Until it is known who that is there is nothing, and nothing is kept.
 */
export function useOwn<Value>(key: string, otherwise: Value): [Value, (value: Value) => void] {
  const me = useQuery(meQuery(useHost())).data?.name;
  const [value, change] = useRemembered(`${key}:${me ?? ''}`, otherwise);
  const changeOwn = useCallback((next: Value) => (me ? change(next) : undefined), [me, change]);
  return [me ? value : otherwise, changeOwn];
}

/** What earlier versions kept for whoever came goes: nobody knows whose it is. */
export function useForgetting(key: string): void {
  useEffect(() => forget(key), [key]);
}

function forget(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // A browser that keeps nothing has nothing to forget.
  }
}

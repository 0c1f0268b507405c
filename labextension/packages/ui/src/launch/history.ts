/** What somebody has launched before, and wants to launch again: kept in their browser. */
import { useCallback } from 'react';
import { useForgetting, useOwn } from '../lists/remembered';
import { newId } from '../secure';
import type { Wish } from './wish';

export interface Launched {
  id: string;
  /** When it was asked for, or kept. */
  at: string;
  title: string;
  wish: Wish;
  /** Kept until somebody removes it. */
  kept: boolean;
}

/** So many of those that nobody has kept. */
export const RECENT = 5;

const NONE: Launched[] = [];

/** The list with one more: the same wish is not in it twice, and old ones go. */
export function add(list: readonly Launched[], one: Launched): Launched[] {
  const same = (each: Launched): boolean =>
    !each.kept && JSON.stringify(each.wish) === JSON.stringify(one.wish);
  const all = [one, ...list.filter(each => one.kept || !same(each))];
  const recent = all.filter(each => !each.kept).slice(0, RECENT);
  return all.filter(each => each.kept || recent.includes(each));
}

export interface LaunchHistory {
  recent: Launched[];
  templates: Launched[];
  remember(wish: Wish, title: string): void;
  save(wish: Wish, title: string): void;
  rename(id: string, title: string): void;
  remove(id: string): void;
  restore(list: Launched[]): void;
  all: Launched[];
}

export function useLaunchHistory(): LaunchHistory {
  useForgetting('bai.launches');
  const [all, setAll] = useOwn('bai.launches', NONE);
  const put = useCallback(
    (wish: Wish, title: string, kept: boolean) =>
      setAll(add(all, { id: newId(), at: new Date().toISOString(), title, wish, kept })),
    [all, setAll]
  );
  return {
    all,
    recent: all.filter(each => !each.kept),
    templates: all.filter(each => each.kept),
    remember: (wish, title) => put(wish, title, false),
    save: (wish, title) => put(wish, title, true),
    rename: (id, title) =>
      setAll(all.map(each => (each.id === id ? { ...each, title } : each))),
    remove: id => setAll(all.filter(each => each.id !== id)),
    restore: setAll
  };
}

/** What the page a component lives in must offer: the only difference between hosts. */
import type { Api } from '@backendai/api';
import { createContext, useContext } from 'react';

export type NoticeLevel = 'info' | 'success' | 'warning' | 'error';
export type ColorMode = 'light' | 'dark';

export interface Host {
  kind: 'lab' | 'console';
  api: Api;
  /** Open the event stream after one event; separate from `api` because it streams. */
  openEvents(after: string, signal: AbortSignal): Promise<Response>;
  notify(level: NoticeLevel, text: string): void;
  /** Where a session's own page is, or null where the host has none. */
  sessionHref(id: string): string | null;
  /** Go to one of the host's own pages without loading the document again. */
  navigate(href: string): void;
  /** Where a session is asked for; `server` is `user/name`, or null for the default one. */
  launchHref(server: string | null): string;
  /** Ask the user to log in again. */
  login(): void;
  language: string;
  colorMode: ColorMode;
  /** False pauses everything that costs requests. */
  visible: boolean;
}

const HostContext = createContext<Host | null>(null);

export const HostProvider = HostContext.Provider;

export function useHost(): Host {
  const host = useContext(HostContext);
  if (host === null) {
    throw new Error('components of @backendai/ui need a HostProvider around them');
  }
  return host;
}

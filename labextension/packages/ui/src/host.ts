/** What the page a component lives in must offer: the only difference between hosts. */
import type { Api, Listener } from '@backendai/api';
import type { Language } from './i18n';
import { createContext, useContext } from 'react';

export type NoticeLevel = 'info' | 'success' | 'warning' | 'error';
export type ColorMode = 'light' | 'dark';

export interface Host {
  kind: 'lab' | 'console';
  api: Api;
  /** Hear what the window's one event stream tells; returns how to stop that. */
  listen(listener: Listener): () => void;
  /** Tell something in passing; `undo` takes back what it tells of. */
  notify(level: NoticeLevel, text: string, undo?: () => void): void;
  /** Where the service's API answers this page: `/api/me` and whatever follows. */
  addressOf(path: string): string;
  /** What a request that changes something carries, where `api` does not send it. */
  writeHeaders(): Record<string, string>;
  /**
   * Where one of our pages (`/sessions/1b…`, see `pages/`) can be opened by itself, or
   * null where the host shows pages but has no address for them.
   */
  hrefOf(path: string): string | null;
  /** Show one of our pages without loading the document again. */
  open(path: string): void;
  /** Say what the page that is shown is called. */
  retitle(title: string): void;
  /** Where a session is asked for; `server` is `user/name`, or null for the default one. */
  launchHref(server: string | null): string;
  /** Ask the user to log in again. */
  login(): void;
  language: string;
  /** Speak another language; absent where the host chooses. */
  setLanguage?(language: Language): void;
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

/** How the event stream is doing, and what follows from it for what pages ask. */
import type { StreamState } from '@backendai/api';
import { createContext, useContext } from 'react';

/** How often to look while the stream is down, in milliseconds. */
export const POLL = 5000;

/** How often a query asks again by itself: so many milliseconds, or never. */
export type Polling = number | false;

const StreamContext = createContext<StreamState>('connecting');

export const StreamProvider = StreamContext.Provider;

export function useStreamState(): StreamState {
  return useContext(StreamContext);
}

/**
 * How often to ask for what the stream tells of: never while it works.
 *
 * Queries are asked while their page is seen only, this one's answer or not.
 */
export function usePolling(): Polling {
  return useStreamState() === 'live' ? false : POLL;
}

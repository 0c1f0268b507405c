/** One event stream of a window, for everybody in it who listens. */
import { followEvents, type ServerEvent, type StreamState } from './events';

export interface Listener {
  onEvent(event: ServerEvent): void;
  onState(state: StreamState): void;
  /** Whether to hear, beside the facts, what is used and of what else something changed. */
  everything?: boolean;
}

/** After so many milliseconds too much has happened to be told one by one. */
const LONG = 3_600_000;

/** Ask for a stream; `query` says from where on, and of what. */
export type OpenStream = (query: URLSearchParams, signal: AbortSignal) => Promise<Response>;

/**
 * Open while somebody listens, and nobody has sent it to rest.
 *
 * Whoever comes or goes, and whatever breaks: it goes on after the last fact that it told.
 */
export class SharedStream {
  private readonly listeners = new Set<Listener>();
  private following: AbortController | null = null;
  private state: StreamState = 'connecting';
  private after = '';
  private full = false;
  private resting = false;
  private silentSince = 0;
  private adapting = false;

  /** `network` says when it has come or gone: a stream of before tells nothing now. */
  constructor(
    private readonly open: OpenStream,
    network: EventTarget
  ) {
    for (const change of ['online', 'offline']) {
      network.addEventListener(change, () => {
        if (this.following) {
          this.begin();
        }
      });
    }
  }

  /** Tell *listener* everything from now on; returns how to stop that. */
  readonly listen = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    const isServed = this.following && (this.full || !listener.everything);
    listener.onState(isServed ? this.state : 'connecting');
    this.adapt();
    return () => {
      this.listeners.delete(listener);
      this.adapt();
    };
  };

  /** Tell nothing while `resting`, and afterwards what was missed, if it was not long. */
  rest(resting: boolean): void {
    this.resting = resting;
    this.adapt();
  }

  /** Those who come together, as parts of a page do, are served together. */
  private adapt(): void {
    if (!this.adapting) {
      this.adapting = true;
      queueMicrotask(() => {
        this.adapting = false;
        this.settle();
      });
    }
  }

  private settle(): void {
    const full = [...this.listeners].some(each => each.everything);
    if (!this.listeners.size || this.resting) {
      if (this.following) {
        this.following.abort();
        this.following = null;
        this.silentSince = Date.now();
      }
    } else if (!this.following || full !== this.full) {
      if (!this.following && Date.now() - this.silentSince > LONG) {
        this.after = '';
      }
      this.full = full;
      this.begin();
    }
  }

  private begin(): void {
    this.following?.abort();
    this.following = new AbortController();
    void followEvents({
      open: (after, signal) => this.open(this.query(after || this.after), signal),
      signal: this.following.signal,
      onEvent: event => this.listeners.forEach(each => each.onEvent(event)),
      onProgress: id => {
        this.after = id;
      },
      onState: state => {
        this.state = state;
        this.listeners.forEach(each => each.onState(state));
      }
    });
  }

  private query(after: string): URLSearchParams {
    return new URLSearchParams({
      ...(this.full ? { usage: '1', changes: '1' } : {}),
      ...(after ? { after } : {})
    });
  }
}

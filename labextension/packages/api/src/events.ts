/**
 * Server-sent events over `fetch`.
 *
 * The browser's own `EventSource` cannot go through JupyterLab's connection, nor
 * tell a refused stream from a lost one; a stream read by hand can.
 */

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

export type StreamState = 'connecting' | 'live' | 'retrying' | 'refused';

/** Read the events of one response body, until it ends; one without data says where it is. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => undefined
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      onBytes();
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event) {
          yield event;
        }
      }
    }
  } finally {
    // The reader may still be open when the consumer stops early.
    await reader.cancel().catch(() => undefined);
  }
}

function parseBlock(block: string): ServerEvent | null {
  const event: ServerEvent = { id: '', event: 'message', data: '' };
  const lines: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const match = /^(id|event|data):? ?(.*)$/.exec(line);
    if (match?.[1] === 'data') {
      lines.push(match[2] ?? '');
    } else if (match?.[1] === 'id') {
      event.id = match[2] ?? '';
    } else if (match?.[1] === 'event') {
      event.event = match[2] ?? '';
    }
  }
  event.data = lines.join('\n');
  return lines.length || event.id ? event : null;
}

export interface EventSourceOptions {
  /** Open the stream after the event numbered `after` (empty: from now on). */
  open(after: string, signal: AbortSignal): Promise<Response>;
  onEvent(event: ServerEvent): void;
  /** Called with the number to go on after, just before what it stands for is told. */
  onProgress?(id: string): void;
  onState(state: StreamState): void;
  signal: AbortSignal;
  /** Milliseconds without a byte after which a stream counts as dead. */
  silence?: number;
  wait?(milliseconds: number, signal: AbortSignal): Promise<void>;
  random?(): number;
  now?(): number;
}

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
/** A stream that lasted this long and then ended did so on purpose. */
const HEALTHY = 30_000;

/** Follow a stream until `signal` aborts, resuming where it broke off. */
export async function followEvents(options: EventSourceOptions): Promise<void> {
  const { onState, signal, wait = pause, random = Math.random } = options;
  let after = '';
  let failures = 0;
  onState('connecting');
  while (!signal.aborted) {
    const outcome = await readOnce(options, after, id => {
      after = id || after;
      failures = 0;
      if (id) {
        options.onProgress?.(id);
      }
    });
    if (signal.aborted) {
      return;
    }
    if (outcome === 'refused') {
      onState('refused');
      return;
    }
    if (outcome === 'ended') {
      continue; // the service ends streams now and then, to look at rights again
    }
    onState('retrying');
    // Half of the wait is random: a restarted service must not meet everybody at once.
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures);
    failures += 1;
    await wait(longest * (0.5 + random() / 2), signal);
  }
}

async function readOnce(
  options: EventSourceOptions,
  after: string,
  onProgress: (id: string) => void
): Promise<'ended' | 'lost' | 'refused'> {
  const { now = Date.now } = options;
  const attempt = new AbortController();
  const stop = (): void => attempt.abort();
  options.signal.addEventListener('abort', stop);
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Sleeping laptops and proxies lose connections without saying so.
  const listen = (): void => {
    clearTimeout(timer);
    timer = setTimeout(stop, options.silence ?? 45_000);
  };
  try {
    listen();
    const response = await options.open(after, attempt.signal);
    if (response.status === 401 || response.status === 403) {
      return 'refused';
    }
    if (!response.ok || !response.body) {
      return 'lost';
    }
    options.onState('live');
    const begun = now();
    onProgress('');
    for await (const event of readEvents(response.body, listen)) {
      onProgress(event.id);
      if (event.data) {
        options.onEvent(event);
      }
    }
    return now() - begun > HEALTHY ? 'ended' : 'lost';
  } catch {
    // Every way of losing the stream has the same remedy: open it again.
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener('abort', stop);
    stop();
  }
  return 'lost';
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

import { describe, expect, test } from 'vitest';
import { followEvents, readEvents, type ServerEvent, type StreamState } from './events';

function stream(...chunks: string[]): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      chunks.forEach(chunk => controller.enqueue(bytes.encode(chunk)));
      controller.close();
    }
  });
}

async function collect(body: ReadableStream<Uint8Array>): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(body)) {
    events.push(event);
  }
  return events;
}

const read = (...chunks: string[]): Promise<ServerEvent[]> => collect(stream(...chunks));

describe('reading events', () => {
  test('an event may arrive in any number of pieces', async () => {
    const whole = await read('id: 7\nevent: session\ndata: {"a":1}\n\n');
    const torn = await read('id', ': 7\nevent: ses', 'sion\ndata: {"a"', ':1}\n', '\n');

    expect(whole).toEqual([{ id: '7', event: 'session', data: '{"a":1}' }]);
    expect(torn).toEqual(whole);
  });

  test('a letter torn between two pieces is put together again', async () => {
    const bytes = new TextEncoder().encode('data: 세션\n\n');
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, 7));
        controller.enqueue(bytes.slice(7));
        controller.close();
      }
    });

    const events = await collect(body);

    expect(events.map(event => event.data)).toEqual(['세션']);
  });

  test('comments keep a stream alive and say nothing', async () => {
    expect(await read(': keep-alive\n\n', 'data: x\r\n\r\n', 'retry: 5\n\n')).toEqual([
      { id: '', event: 'message', data: 'x' }
    ]);
  });

  test('several lines of data are one text', async () => {
    expect((await read('data: a\ndata: b\n\n'))[0]?.data).toBe('a\nb');
  });
});

/** Follow streams that `answers` opens, one after the other, until they run out. */
async function follow(answers: (() => Response)[], now: () => number = () => 0) {
  const stop = new AbortController();
  const states: StreamState[] = [];
  const asked: string[] = [];
  const waits: number[] = [];
  const seen: string[] = [];
  await followEvents({
    signal: stop.signal,
    open: async after => {
      asked.push(after);
      const answer = answers.shift();
      if (!answer) {
        stop.abort();
        throw new Error('no more answers');
      }
      return answer();
    },
    onEvent: event => seen.push(event.data),
    onState: state => states.push(state),
    wait: async milliseconds => void waits.push(milliseconds),
    random: () => 1,
    now
  });
  return { states, asked, waits, seen };
}

const events =
  (...ids: number[]) =>
  () =>
    new Response(stream(...ids.map(id => `id: ${id}\ndata: ${id}\n\n`)));
const down = () => new Response(null, { status: 503 });

describe('following events', () => {
  test('a broken stream is resumed after the last event that came', async () => {
    const { asked, seen } = await follow([events(4, 5), events(6)]);

    expect(asked).toEqual(['', '5', '6']);
    expect(seen).toEqual(['4', '5', '6']);
  });

  test('waits grow while the service is down, and begin anew once it answers', async () => {
    const { waits } = await follow([down, down, down, events(1), down]);

    expect(waits).toEqual([1000, 2000, 4000, 1000, 2000]);
  });

  test('a wait is never longer than half a minute', async () => {
    const { waits } = await follow(Array.from({ length: 9 }, () => down));

    expect(Math.max(...waits)).toBe(30_000);
  });

  test('a stream that the service ends after a while is opened again at once', async () => {
    let clock = 0;
    const { states, waits } = await follow([events(1)], () => (clock += 40_000));

    expect(waits).toEqual([]);
    expect(states).toEqual(['connecting', 'live']);
  });

  test('somebody who may not listen is not asked again and again', async () => {
    const { states, asked } = await follow([() => new Response(null, { status: 403 }), down]);

    expect(states).toEqual(['connecting', 'refused']);
    expect(asked).toHaveLength(1);
  });

  test('a silent connection counts as lost', async () => {
    const stop = new AbortController();
    const states: StreamState[] = [];
    await followEvents({
      signal: stop.signal,
      silence: 1,
      open: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
        }),
      onEvent: () => undefined,
      onState: state => states.push(state),
      wait: async () => stop.abort()
    });

    expect(states).toEqual(['connecting', 'retrying']);
  });
});

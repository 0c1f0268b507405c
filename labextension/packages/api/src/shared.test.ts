import { describe, expect, test, vi } from 'vitest';
import type { StreamState } from './events';
import { SharedStream } from './shared';

/** A service that tells what it is given, and whoever listens to it. */
function serve() {
  const asked: string[] = [];
  const open = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const network = new EventTarget();
  const stream = new SharedStream(async (query, signal) => {
    asked.push(query.toString());
    return new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          open.add(controller);
          signal.addEventListener('abort', () => {
            open.delete(controller);
            controller.error(new Error('aborted'));
          });
        }
      })
    );
  }, network);
  const settle = (): Promise<void> => new Promise(resolve => setTimeout(resolve));
  const tell = (text: string): Promise<void> => {
    open.forEach(each => each.enqueue(new TextEncoder().encode(text)));
    return settle();
  };
  return { asked, open, network, stream, settle, tell };
}

function listener(everything = false) {
  const heard: string[] = [];
  const states: StreamState[] = [];
  return {
    heard,
    states,
    everything,
    onEvent: ({ data }: { data: string }) => void heard.push(data),
    onState: (state: StreamState) => void states.push(state)
  };
}

describe('one stream for a whole window', () => {
  test('is asked for once by those who come together, and heard by all', async () => {
    const { asked, stream, settle, tell } = serve();
    const [one, other] = [listener(), listener(true)];
    stream.listen(one);
    stream.listen(other);
    await settle();
    await tell('id: 7\ndata: a\n\n');

    expect(asked).toEqual(['usage=1&changes=1']);
    expect([one.heard, other.heard]).toEqual([['a'], ['a']]);
  });

  test('says to whoever comes late how it is doing', async () => {
    const { stream, settle } = serve();
    stream.listen(listener());
    await settle();
    const late = listener();
    stream.listen(late);

    expect(late.states).toEqual(['live']);
  });

  test('says that it is live once to whoever has it opened or hears more of it', async () => {
    const { stream, settle } = serve();
    const leave = stream.listen(listener());
    await settle();
    leave();
    await settle();
    const [again, more] = [listener(), listener(true)];
    stream.listen(again);
    await settle();
    stream.listen(more);
    await settle();

    expect([again, more].map(each => each.states.indexOf('live'))).toEqual([2, 2]);
  });

  test('tells more when somebody wants it, after what was told, and less again', async () => {
    const { asked, open, stream, settle, tell } = serve();
    stream.listen(listener());
    await settle();
    await tell('id: 7\ndata: a\n\n');
    const leave = stream.listen(listener(true));
    await settle();
    leave();
    await settle();

    expect(asked).toEqual(['', 'usage=1&changes=1&after=7', 'after=7']);
    expect(open.size).toBe(1);
  });

  test('is closed when nobody listens', async () => {
    const { open, stream, settle } = serve();
    const leave = stream.listen(listener());
    await settle();
    leave();
    await settle();

    expect(open.size).toBe(0);
  });

  test('goes on after a rest from where it was, though nothing was told before', async () => {
    const { asked, open, stream, settle, tell } = serve();
    const one = listener();
    stream.listen(one);
    await settle();
    await tell(': from 5\nid: 5\nretry: 1000\n\n');
    stream.rest(true);
    await settle();
    expect(open.size).toBe(0);
    stream.rest(false);
    await settle();

    expect(asked).toEqual(['', 'after=5']);
    expect(one.heard).toEqual([]);
  });

  test('is opened anew when the network has changed, but only if it was open', async () => {
    const { asked, network, stream, settle } = serve();
    network.dispatchEvent(new Event('online'));
    stream.listen(listener());
    await settle();
    network.dispatchEvent(new Event('online'));
    await settle();

    expect(asked).toHaveLength(2);
  });
});

describe('after hours in which nothing was told', () => {
  const pass = (hours: number): void => void vi.setSystemTime(Date.now() + hours * 3_600_000);

  test('nobody is told of all that happened meanwhile', async () => {
    const { asked, stream, settle, tell } = serve();
    stream.listen(listener());
    await settle();
    await tell('id: 5\n\n');
    vi.useFakeTimers({ toFake: ['Date'] });
    stream.rest(true);
    await settle();
    pass(2);
    stream.rest(false);
    await settle();
    vi.useRealTimers();

    expect(asked).toEqual(['', '']);
  });

  test('neither is whoever comes when there was nobody', async () => {
    const { asked, stream, settle, tell } = serve();
    const leave = stream.listen(listener());
    await settle();
    await tell('id: 5\n\n');
    vi.useFakeTimers({ toFake: ['Date'] });
    leave();
    await settle();
    pass(2);
    stream.listen(listener());
    await settle();
    vi.useRealTimers();

    expect(asked).toEqual(['', '']);
  });
});

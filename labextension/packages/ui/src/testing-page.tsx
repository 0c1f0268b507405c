/** A page on a host of its own, over a service that answers as it is told. */
import { createApi } from '@backendai/api';
import { notifyManager, QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import { configure, render } from '@testing-library/react';
import { I18nextProvider } from 'react-i18next';
import { vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { HostProvider, type Host } from './host';
import { createTranslator, type Area, type Language } from './i18n';
import { createQueryClient } from './queries';

// What is awaited comes sooner or later: machines may be busy.
configure({ asyncUtilTimeout: 10_000 });

// The cache tells its readers within `act`, instead of some time later.
notifyManager.setScheduler(queueMicrotask);

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
}

/** What is answered: anything becomes JSON, a `Response` stays what it is. */
export type Answer = (asked: Asked) => unknown;

export interface Shown {
  client: QueryClient;
  host: Host;
  /** Every request so far. */
  asked: Asked[];
  /** Where the page's router stands, with its query. */
  address(): string;
}

interface Options {
  answer?: Answer;
  areas?: readonly Area[];
  address?: string;
  host?: Partial<Host>;
  /** What its texts are in; dates and amounts follow `host.language`. */
  texts?: Language;
}

export async function showPage(
  page: JSX.Element,
  {
    answer = ({ path }) =>
      path === '/api/me' ? { name: 'mina', roles: ['user'] } : { items: [], next: null },
    areas = [],
    address = '/',
    host: own,
    texts = 'en'
  }: Options = {}
): Promise<Shown> {
  const asked: Asked[] = [];
  const api = createApi(async request => {
    const { pathname, searchParams } = new URL(request.url);
    const text = request.method === 'GET' ? '' : await request.text();
    const body: unknown = text ? JSON.parse(text) : null;
    const one = { method: request.method, path: pathname, query: searchParams, body };
    asked.push(one);
    const given = await answer(one);
    return given instanceof Response ? given : Response.json(given);
  }, 'http://localhost/');
  const [path = '/', search = ''] = address.split('?');
  const { hook, searchHook, navigate } = memoryLocation({ path, searchPath: search });
  const where = { now: address };
  function Watch(): null {
    const [location] = hook();
    const query = searchHook();
    where.now = query ? `${location}?${query}` : location;
    return null;
  }
  const host: Host = {
    kind: 'console',
    api,
    listen: () => () => undefined,
    notify: vi.fn(),
    addressOf: each => each,
    writeHeaders: () => ({}),
    hrefOf: each => each,
    retitle: () => undefined,
    open: vi.fn((each: string) => navigate(each)),
    launchHref: server => (server ? `/hub/spawn/${server}` : '/hub/spawn'),
    login: () => undefined,
    language: 'en',
    colorMode: 'light',
    visible: true,
    ...own
  };
  const client = createQueryClient();
  render(
    <I18nextProvider i18n={await createTranslator(texts, areas)}>
      <QueryClientProvider client={client}>
        <Router hook={hook} searchHook={searchHook}>
          <Watch />
          <HostProvider value={host}>
            <div className="bai-root">{page}</div>
          </HostProvider>
        </Router>
      </QueryClientProvider>
    </I18nextProvider>
  );
  return { client, host, asked, address: () => where.now };
}

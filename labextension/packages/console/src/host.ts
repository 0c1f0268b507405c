/** The console as a host: same-origin requests with the cookies of its own login. */
import { createApi, type Api } from '@backendai/api';
import { SharedStream } from '@backendai/api/shared';

function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? '';
}

/** The service's prefix, with a slash at its end. */
export const prefix = meta('backendai-prefix');

/** JupyterHub's own pages, with a slash at their end. */
export const hub = meta('backendai-hub');

export const nonce = document.querySelector<HTMLMetaElement>(
  'meta[property="csp-nonce"]'
)?.nonce;

const SAFE = ['GET', 'HEAD', 'OPTIONS'];

function xsrfToken(): string {
  const match = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie);
  return match?.[1] ? decodeURIComponent(match[1]) : '';
}

/** Where the API answers: `/api/me` and whatever follows. */
export const addressOf = (path: string): string => `${prefix}${path.replace(/^\//, '')}`;

export const writeHeaders = (): Record<string, string> => ({ 'X-XSRFToken': xsrfToken() });

async function fetchHere(request: Request): Promise<Response> {
  if (!SAFE.includes(request.method)) {
    request.headers.set('X-XSRFToken', xsrfToken());
  }
  // A login that has ended would send us to JupyterHub's HTML pages.
  const response = await fetch(request, { redirect: 'manual' });
  return response.type === 'opaqueredirect' ? new Response(null, { status: 401 }) : response;
}

export const api: Api = createApi(fetchHere, prefix);

export const stream = new SharedStream((query, signal) => {
  const headers = { Accept: 'text/event-stream' };
  const url = `${prefix}api/events?${query.toString()}`;
  return fetchHere(new Request(url, { signal, headers }));
}, window);

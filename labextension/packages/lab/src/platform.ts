/** Requests to the platform, through the proxy on the session's own origin. */
import type { Session } from '@backendai/api';
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

type Settings = ServerConnection.ISettings;

export function platformUrl(settings: Settings): string {
  return URLExt.join(settings.baseUrl, 'backendai');
}

/** Send a request as JupyterLab sends its own: with its token or its XSRF header. */
export async function fetchPlatform(settings: Settings, request: Request): Promise<Response> {
  const { method, signal } = request;
  const headers = Object.fromEntries(request.headers.entries());
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? await request.blob() : null;
  // Any other `cache` makes JupyterLab add a stray parameter to the address.
  const init: RequestInit = { method, headers, signal, body, cache: 'no-cache' };
  return ServerConnection.makeRequest(request.url, init, settings);
}

/** What JupyterLab's own requests carry, for those that it does not send itself. */
export function writeHeaders({ token }: Settings): Record<string, string> {
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1];
  return {
    ...(token ? { Authorization: `token ${token}` } : {}),
    ...(xsrf ? { 'X-XSRFToken': decodeURIComponent(xsrf) } : {})
  };
}

/** Ask for the platform's event stream, as far on and as full as `query` says. */
export function openEvents(
  settings: Settings,
  query: URLSearchParams,
  signal: AbortSignal
): Promise<Response> {
  const url = `${platformUrl(settings)}/api/events?${query.toString()}`;
  return fetchPlatform(settings, new Request(url, { signal }));
}

/** One's sessions that run; null if the platform does not answer. */
export async function listRunning(settings: Settings): Promise<readonly Session[] | null> {
  try {
    const url = `${platformUrl(settings)}/api/sessions?status=RUNNING&limit=100`;
    const response = await fetchPlatform(settings, new Request(url));
    return response.ok ? ((await response.json()) as { items: Session[] }).items : null;
  } catch {
    return null; // nothing in JupyterLab depends on it
  }
}

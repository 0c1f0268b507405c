/** Requests to the platform, through the proxy on the session's own origin. */
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
  const body = method === 'GET' ? null : await request.text();
  // Any other `cache` makes JupyterLab add a stray parameter to the address.
  const init: RequestInit = { method, headers, signal, body, cache: 'no-cache' };
  return ServerConnection.makeRequest(request.url, init, settings);
}

interface ThisSession {
  name: string;
  image: string;
  attachment: { prefix: string } | null;
}

/** The session this JupyterLab runs in, if the platform answers and knows it. */
export async function findThisSession(settings: Settings): Promise<ThisSession | null> {
  try {
    const url = `${platformUrl(settings)}/api/sessions?status=RUNNING&limit=100`;
    const response = await fetchPlatform(settings, new Request(url));
    if (!response.ok) {
      return null;
    }
    const page = (await response.json()) as { items: ThisSession[] };
    const here = new URL(settings.baseUrl).pathname;
    return page.items.find(session => session.attachment?.prefix === here) ?? null;
  } catch {
    return null; // nothing in JupyterLab depends on it
  }
}

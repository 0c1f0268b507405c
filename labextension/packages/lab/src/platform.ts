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

interface ThisSession {
  name: string;
  image: string;
  attachment: { prefix: string } | null;
}

export interface Surroundings {
  name: string;
  image: string;
  /** How many sessions of the same person run. */
  count: number;
}

/** The session this JupyterLab runs in, if the platform answers and knows it. */
export async function lookAround(settings: Settings): Promise<Surroundings | null> {
  try {
    const url = `${platformUrl(settings)}/api/sessions?status=RUNNING&limit=100`;
    const response = await fetchPlatform(settings, new Request(url));
    if (!response.ok) {
      return null;
    }
    const { items } = (await response.json()) as { items: ThisSession[] };
    const path = new URL(settings.baseUrl).pathname;
    const here = items.find(session => session.attachment?.prefix === path);
    return here ? { name: here.name, image: here.image, count: items.length } : null;
  } catch {
    return null; // nothing in JupyterLab depends on it
  }
}

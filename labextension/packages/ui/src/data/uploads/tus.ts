/** Sends files by the tus protocol: what breaks off goes on where it was. */
import { unwrap } from '@backendai/api';
import type * as Tus from 'tus-js-client';
import type { DetailedError, Upload, UploadOptions } from 'tus-js-client';
import type { Host } from '../../host';
import { patiently } from '../../patiently';
import { join } from '../paths';
import type { Destination, SendOptions, Sending, Transport } from './queue';

/** What of the page sending needs; it is asked each time, since tokens change. */
export type Line = Pick<Host, 'api' | 'addressOf' | 'writeHeaders'>;

const MIB = 2 ** 20;
/** So much is sent in one request: what is lost when a proxy cuts it off. */
const PART = 64 * MIB;
/** Smaller files are sent whole again instead of being remembered. */
const REMEMBERED = MIB;
/** A service that restarts is back within these, in milliseconds. */
const PATIENCE = [500, 1000, 2000, 4000, 8000, 15_000, 30_000, 30_000, 30_000];

/** Statuses after which the same request may go well. */
const PASSING = [408, 423, 425, 429, 500, 502, 503, 504];

/** Whether trying again helps. */
export function mayPass(status: number, method: string): boolean {
  // Where somebody else sends the same, or what was sent was cut off half-way.
  const moved = status === 409 && method !== 'POST';
  return status === 0 || moved || PASSING.includes(status);
}

/** Names a file on its way: the same one is meant only at the same place. */
export function fingerprint(file: File, { to, path, conflict }: SendOptions): string {
  const place = join(to.path, path);
  return ['bai', to.folderId, place, conflict, file.size, file.lastModified].join('|');
}

/** The address of an upload as this page reaches it; `''` where it is none. */
export function reachable(location: string, addressOf: Line['addressOf']): string {
  const id = /\/api\/uploads\/([\w-]+)$/.exec(location)?.[1];
  return id ? addressOf(`/api/uploads/${id}`) : '';
}

interface Failure {
  status: number;
  words: string;
}

function readFailure(error: Error | DetailedError): Failure {
  const response = 'originalResponse' in error ? error.originalResponse : null;
  if (!response) {
    return { status: 0, words: '' };
  }
  const status = response.getStatus();
  try {
    const problem = JSON.parse(response.getBody()) as { detail?: string; title?: string };
    return { status, words: problem.detail ?? problem.title ?? '' };
  } catch {
    return { status, words: '' };
  }
}

export class TusTransport implements Transport {
  constructor(private readonly line: () => Line) {}

  send(options: SendOptions): Sending {
    const state = { upload: null as Upload | null, stopped: false };
    void this.begin(options, state).catch((reason: unknown) => {
      options.onFailed(reason instanceof Error ? reason.message : String(reason));
    });
    const stop = (terminate: boolean): void => {
      state.stopped = true;
      // What cannot be ended now ends by itself after a day.
      void state.upload?.abort(terminate).catch(() => undefined);
    };
    return { pause: () => stop(false), cancel: () => stop(true) };
  }

  async makeFolder(to: Destination, path: string): Promise<void> {
    await unwrap(
      this.line().api.POST('/api/folders/{folder_id}/directories', {
        params: { path: { folder_id: to.folderId } },
        body: { path: join(to.path, path), parents: true, exist_ok: true }
      })
    );
  }

  private async begin(
    options: SendOptions,
    state: { upload: Upload | null; stopped: boolean }
  ): Promise<void> {
    const tus = await patiently(() => import('tus-js-client'));
    if (state.stopped) {
      return;
    }
    const upload = new tus.Upload(options.file, this.optionsOf(options, tus));
    state.upload = upload;
    const known = (await upload.findPreviousUploads())[0];
    if (known?.uploadUrl) {
      const uploadUrl = reachable(known.uploadUrl, this.line().addressOf);
      upload.resumeFromPreviousUpload({ ...known, uploadUrl });
    }
    // Meanwhile it may have been stopped.
    if (!state.stopped) {
      upload.start();
    }
  }

  private optionsOf(options: SendOptions, tus: typeof Tus): UploadOptions {
    const { to, path, file, conflict } = options;
    return {
      endpoint: this.line().addressOf(`/api/folders/${to.folderId}/uploads`),
      metadata: { path: join(to.path, path), conflict },
      chunkSize: PART,
      retryDelays: PATIENCE,
      uploadDataDuringCreation: file.size <= REMEMBERED,
      storeFingerprintForResuming: file.size > REMEMBERED,
      removeFingerprintOnSuccess: true,
      fingerprint: () => Promise.resolve(fingerprint(file, options)),
      httpStack: new OwnAddresses(new tus.DefaultHttpStack({}), this.line),
      onBeforeRequest: request => {
        for (const [name, value] of Object.entries(this.line().writeHeaders())) {
          request.setHeader(name, value);
        }
      },
      onShouldRetry: error => {
        const method = error.originalRequest.getMethod();
        return mayPass(readFailure(error).status, method);
      },
      onProgress: sent => options.onProgress(sent),
      onSuccess: () => options.onStored(),
      onError: error => this.end(error, options)
    };
  }

  private end(error: Error | DetailedError, options: SendOptions): void {
    const { status, words } = readFailure(error);
    if (status === 409) {
      options.onClash();
    } else {
      options.onFailed(words);
    }
  }
}

type Stack = NonNullable<UploadOptions['httpStack']>;
type Sent = ReturnType<Stack['createRequest']>;
type Answer = Awaited<ReturnType<Sent['send']>>;

/**
 * Reads where an upload is as an address of this page, which may go through a proxy, and
 * keeps the client from giving up what has arrived while the service is away.
 */
class OwnAddresses implements Stack {
  constructor(
    private readonly inner: Stack,
    private readonly line: () => Line
  ) {}

  createRequest(method: string, url: string): Sent {
    const request = this.inner.createRequest(method, url);
    const send = request.send.bind(request);
    request.send = async body => {
      const answer = await send(body);
      if (method === 'HEAD' && mayPass(answer.getStatus(), method)) {
        // Who cannot tell now how much has arrived may do so soon: to the client this
        // would mean that nothing has, and it would begin again.
        throw new Error(`${answer.getStatus()}`);
      }
      const read = answer.getHeader.bind(answer);
      answer.getHeader = name => this.readHeader(name, read);
      return answer;
    };
    return request;
  }

  getName(): string {
    return this.inner.getName();
  }

  private readHeader(name: string, read: Answer['getHeader']): string | undefined {
    const value = read(name);
    if (name.toLowerCase() === 'location' && value) {
      return reachable(value, this.line().addressOf) || value;
    }
    return value;
  }
}

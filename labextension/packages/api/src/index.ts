/** The hub service's API: types from its OpenAPI document, and one client. */
import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './schema';

export { followEvents, readEvents } from './events';
export type { EventSourceOptions, ServerEvent, StreamState } from './events';
export type { Listener } from './shared';

export type Schemas = components['schemas'];
export type Agent = Schemas['Agent'];
export type CheckedPreset = Schemas['CheckedPreset'];
export type DryRun = Schemas['DryRun'];
export type EventMessage = Schemas['EventMessage'];
export type Folder = Schemas['Folder'];
export type FolderPage = Schemas['FolderPage'];
export type GroupRoom = Schemas['GroupRoom'];
export type HeldDevice = Schemas['HeldDevice'];
export type ImageChoice = Schemas['ImageChoice'];
export type Me = Schemas['Me'];
export type Mount = Schemas['Mount'];
export type PossibleChange = Schemas['PossibleChange'];
export type PresetCheck = Schemas['PresetCheck'];
export type QueuePlace = Schemas['QueuePlace'];
export type Resources = Schemas['Resources'];
export type Session = Schemas['Session'];
export type SessionContainer = Schemas['SessionContainer'];
export type SessionPage = Schemas['SessionPage'];
export type SessionRequest = Schemas['SessionRequest'];
export type SessionStatus = Schemas['SessionStatus'];
export type ShownSession = Schemas['ShownSession'];
export type SlotRoom = Schemas['SlotRoom'];
export type Why = Schemas['Why'];

export type Fetch = (request: Request) => Promise<Response>;
export type Api = Client<paths>;

/** Make a client whose every request goes through the host's own `fetch`. */
export function createApi(fetch: Fetch, baseUrl: string): Api {
  return createClient<paths>({ fetch, baseUrl: baseUrl.replace(/\/$/, '') });
}

export interface FieldError {
  field: string;
  message: string;
}

/** A refusal by the service, or `status` 0 when it could not be reached. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code = '',
    readonly requestId = '',
    /** What was wrong with which field of the request. */
    readonly fields: readonly FieldError[] = []
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Whether the caller has to log in again. */
  get needsLogin(): boolean {
    return this.status === 401;
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return what a call answered, or throw the {@link ApiError} it was refused with. */
export async function unwrap<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (reason) {
    // An aborted call is not a failure: its caller must be able to tell.
    if (reason instanceof Error && reason.name === 'AbortError') {
      throw reason;
    }
    throw new ApiError(reason instanceof Error ? reason.message : String(reason), 0);
  }
  const { ok, status } = answer.response;
  if (ok && (answer.data !== undefined || status === 204)) {
    return answer.data as T;
  }
  throw toApiError(answer.error, answer.response);
}

function toApiError(error: unknown, response: Response): ApiError {
  const problem = (typeof error === 'object' && error !== null ? error : {}) as {
    detail?: unknown;
    title?: unknown;
    code?: unknown;
    fields?: { errors?: unknown };
  };
  const words = [problem.detail, problem.title].find(
    (text): text is string => typeof text === 'string' && text !== ''
  );
  return new ApiError(
    words ?? `${response.status} ${response.statusText}`.trim(),
    response.status,
    typeof problem.code === 'string' ? problem.code : '',
    response.headers.get('X-Request-Id') ?? '',
    Array.isArray(problem.fields?.errors) ? problem.fields.errors.filter(isFieldError) : []
  );
}

function isFieldError(given: unknown): given is FieldError {
  const { field, message } = (given ?? {}) as Partial<FieldError>;
  return typeof field === 'string' && typeof message === 'string';
}

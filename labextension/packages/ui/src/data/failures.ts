/** What is said of an attempt that did not work. */
import { ApiError } from '@backendai/api';
import type { TFunction } from 'i18next';

export function describeFailure(
  reason: unknown,
  t: TFunction,
  say: (text: string) => string
): string {
  if (reason instanceof ApiError && reason.status !== 0) {
    const id = reason.requestId ? ` (${t('state.request', { id: reason.requestId })})` : '';
    return `${say(reason.message)}${id}`;
  }
  return t('state.unreachable');
}

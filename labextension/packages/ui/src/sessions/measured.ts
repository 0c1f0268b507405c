/** What has been measured of sessions, as the service tells it. */
import type { Schemas } from '@backendai/api';

export type LiveUsage = Schemas['LiveUsage'];
export type LiveSession = Schemas['LiveSession'];
/** By session. */
export type UsageMap = Readonly<Record<string, LiveSession>>;

/** After so many seconds without news nobody knows what a session uses. */
const FRESH = 20;

/** Put what was measured lately to what was known, and forget what is too old. */
export function mergeUsage(old: UsageMap | undefined, batch: LiveUsage): UsageMap {
  const known = Object.values(old ?? {}).filter(each => batch.at - each.at <= FRESH);
  const all = [...known, ...batch.items];
  return Object.fromEntries(all.map(each => [each.session_id, each]));
}

/** Of 0 to 1; null where one of the two is not known. */
export function shareOf(
  value: number | null | undefined,
  limit: number | null | undefined
): number | null {
  return typeof value === 'number' && limit ? Math.min(1, value / limit) : null;
}

/** A session as it is asked for: what the form makes, and what can be written as code. */
import type { SessionRequest } from '@backendai/api';
import type { MountWish } from './mounts';

/** What of a request the pages can choose; absent is what the service chooses. */
export type Wish = Pick<SessionRequest, 'image'> &
  Partial<
    Pick<
      SessionRequest,
      | 'type'
      | 'name'
      | 'project'
      | 'resource_group'
      | 'startup_command'
      | 'environ'
      | 'dependencies'
      | 'starts_at'
      | 'batch_timeout'
      | 'max_attempts'
      | 'cluster_size'
      | 'cluster_mode'
      | 'bootstrap_script'
      | 'tag'
      | 'priority'
    >
  > & { slots?: Record<string, string>; shmem?: string | null; mounts?: MountWish[] };

/** What the service takes as said where nothing is said. */
const USUAL: Record<string, unknown> = {
  type: 'interactive',
  cluster_size: 1,
  cluster_mode: 'single-node',
  max_attempts: 1
};

/** What differs from the usual: nothing empty, and nothing that goes without saying. */
export function spare(wish: Wish): Partial<Wish> {
  const said = Object.entries(wish).filter(([key, value]) => {
    const empty =
      value === null ||
      value === undefined ||
      value === '' ||
      (typeof value === 'object' && Object.keys(value).length === 0);
    return !empty && USUAL[key] !== value;
  });
  return Object.fromEntries(said) as Partial<Wish>;
}

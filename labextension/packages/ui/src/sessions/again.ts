/** What somebody would ask for to get a session like one that is there. */
import type { Session, ShownSession } from '@backendai/api';
import type { Wish } from '../launch/wish';

export function wishOf(session: Session | ShownSession): Wish {
  const mounts = 'mounts' in session ? session.mounts : [];
  return {
    type: session.type,
    image: session.image,
    project: session.project,
    resource_group: session.resource_group ?? null,
    slots: session.slots,
    shmem: session.shmem,
    tag: session.tag ?? null,
    cluster_size: session.cluster_size,
    cluster_mode: session.cluster_mode,
    batch_timeout: session.batch_timeout ?? null,
    max_attempts: session.max_attempts,
    // Those that come by themselves come again by themselves.
    mounts: mounts
      .filter(mount => !mount.automatic)
      .map(({ folder_name: folder, subpath, target }) => ({
        folder,
        ...(subpath ? { subpath } : {}),
        target
      }))
  };
}

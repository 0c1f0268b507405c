/** Offers of folders and answers to them: asked of the service, told to who asked. */
import { unwrap } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { describeFailure } from '../failures';
import { dataKeys } from '../keys';
import { refresh } from '../live';
import type { FolderPermission, Invitation } from '../types';
import { useWording } from '../../wording';

export interface Sharing {
  /** Whom it was not offered to, and why; null where nothing of it could be done. */
  invite(
    folderId: string,
    users: string[],
    permission: FolderPermission
  ): Promise<{ user: string; reason: string }[] | null>;
  /** Say what somebody may do from now on; null: no more than others. */
  share(folderId: string, user: string, permission: FolderPermission | null): Promise<boolean>;
  accept(invitation: Invitation): Promise<boolean>;
  /** Say no, or take back one's own offer. */
  decline(invitation: Invitation): Promise<boolean>;
  change(invitation: Invitation, permission: FolderPermission): Promise<boolean>;
  leave(folderId: string, name: string): Promise<boolean>;
}

export function useSharing(): Sharing {
  const { t } = useTranslation();
  const say = useWording();
  const { api, notify } = useHost();
  const client = useQueryClient();

  async function attempt<T>(call: () => Promise<T>): Promise<{ answer: T } | null> {
    try {
      return { answer: await call() };
    } catch (reason) {
      notify('error', describeFailure(reason, t, say));
      return null;
    } finally {
      const { invitations, folders, quota } = dataKeys;
      refresh(client, [invitations, folders, quota, ['folder']]);
    }
  }

  return {
    invite: async (folderId, users, permission) => {
      const done = await attempt(() =>
        unwrap(
          api.POST('/api/folders/{reference}/invite', {
            params: { path: { reference: folderId } },
            body: { users, permission }
          })
        )
      );
      if (!done) {
        return null;
      }
      const failed = done.answer.filter(outcome => outcome.error);
      const count = done.answer.length - failed.length;
      if (count > 0) {
        notify('success', t('data.invited', { count }));
      }
      return failed.map(({ user, error }) => ({ user, reason: error ?? '' }));
    },
    share: async (folderId, user, permission) => {
      const done = await attempt(() =>
        unwrap(
          api.POST('/api/folders/{reference}/share', {
            params: { path: { reference: folderId } },
            body: { changes: [{ user, permission }] }
          })
        )
      );
      return done !== null;
    },
    accept: async ({ id, folder }) => {
      const params = { path: { invitation_id: id } };
      const done = await attempt(() =>
        unwrap(api.POST('/api/invitations/{invitation_id}/accept', { params }))
      );
      if (done) {
        notify('success', t('data.accepted', { name: folder }));
      }
      return done !== null;
    },
    decline: async ({ id }) => {
      const params = { path: { invitation_id: id } };
      const done = await attempt(() =>
        unwrap(api.DELETE('/api/invitations/{invitation_id}', { params }))
      );
      return done !== null;
    },
    change: async ({ id }, permission) => {
      const params = { path: { invitation_id: id } };
      const done = await attempt(() =>
        unwrap(api.PATCH('/api/invitations/{invitation_id}', { params, body: { permission } }))
      );
      return done !== null;
    },
    leave: async (folderId, name) => {
      const done = await attempt(() =>
        unwrap(
          api.POST('/api/folders/{reference}/leave', {
            params: { path: { reference: folderId } },
            body: { user: null }
          })
        )
      );
      if (done) {
        notify('success', t('data.left', { name }));
      }
      return done !== null;
    }
  };
}

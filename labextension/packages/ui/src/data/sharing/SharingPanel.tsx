/** Who has a folder, what each of them may do, and whom it was offered to. */
import { useQuery } from '@tanstack/react-query';
import { UserMinus, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { IconButton } from '../../kit/Button';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { refuseFolder } from '../access';
import { guestsQuery, invitationsQuery } from '../queries';
import type { Folder, FolderPermission, Guest, Invitation } from '../types';
import { useRights } from '../useAsker';
import { permissionOptions } from '../words';
import { InviteForm } from './InviteForm';
import { MemberForm } from './MemberForm';
import { useSharing } from './useSharing';

export function SharingPanel({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts, asker } = useRights();
  const { data: guests, error, refetch } = useQuery(guestsQuery(host, folder.id));
  const invitations = useQuery(invitationsQuery(host, false)).data ?? [];
  const sent = invitations.filter(
    each => each.folder_id === folder.id && each.state === 'pending'
  );
  const ofProject = folder.ownership_type === 'project';
  const closed = refuseFolder('invite', folder, hosts, asker);
  const keeps = refuseFolder(ofProject ? 'share' : 'update', folder, hosts, asker) === null;
  return (
    <div className="bai-stack">
      {ofProject ? (
        <>
          <p className="bai-help">{t('data.membersText', { name: folder.project ?? '' })}</p>
          {keeps ? <MemberForm folder={folder} /> : null}
        </>
      ) : closed ? (
        <p className="bai-help">{t(`why.${closed}`)}</p>
      ) : (
        <InviteForm folder={folder} />
      )}
      {error && !guests ? <LoadError error={error} onRetry={() => void refetch()} /> : null}
      {!guests && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {guests ? <Guests {...{ folder, guests, keeps }} /> : null}
      {sent.length ? (
        <section>
          <h3>{t('data.sent')}</h3>
          <ul className="bai-people">
            {sent.map(invitation => (
              <SentInvitation key={invitation.id} invitation={invitation} />
            ))}
          </ul>
        </section>
      ) : null}
    </div>
  );
}

interface GuestsProps {
  folder: Folder;
  guests: Guest[];
  /** Whether the one who looks decides about it. */
  keeps: boolean;
}

function Guests({ folder, guests, keeps }: GuestsProps): JSX.Element {
  const { t } = useTranslation();
  const { share } = useSharing();
  return (
    <section>
      <h3>{t('data.sharedWith')}</h3>
      {guests.length === 0 ? <p className="bai-help">{t('data.sharedWithNobody')}</p> : null}
      <ul className="bai-people">
        {guests.map(guest => (
          <li key={guest.user_id}>
            <span className="bai-person">{guest.user}</span>
            {keeps ? (
              <>
                <PermissionChoice
                  label={t('data.permissionOf', { name: guest.user })}
                  value={guest.permission}
                  onChange={permission => void share(folder.id, guest.user, permission)}
                />
                <IconButton
                  label={t('data.revoke', { name: guest.user })}
                  onClick={() => void share(folder.id, guest.user, null)}
                >
                  <UserMinus size={16} aria-hidden />
                </IconButton>
              </>
            ) : (
              <span className="bai-help">{t(`data.permissions.${guest.permission}`)}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function SentInvitation({ invitation }: { invitation: Invitation }): JSX.Element {
  const { t } = useTranslation();
  const { change, decline } = useSharing();
  return (
    <li>
      <span className="bai-person">{invitation.invitee}</span>
      <PermissionChoice
        label={t('data.permissionOf', { name: invitation.invitee })}
        value={invitation.permission}
        onChange={permission => void change(invitation, permission)}
      />
      <IconButton
        label={t('data.takeBack', { name: invitation.invitee })}
        onClick={() => void decline(invitation)}
      >
        <X size={16} aria-hidden />
      </IconButton>
    </li>
  );
}

interface ChoiceProps {
  label: string;
  value: FolderPermission;
  onChange(permission: FolderPermission): void;
}

export function PermissionChoice({ label, value, onChange }: ChoiceProps): JSX.Element {
  const { t } = useTranslation();
  return (
    <select
      className="bai-choice-small"
      aria-label={label}
      value={value}
      onChange={event => onChange(event.target.value as FolderPermission)}
    >
      {permissionOptions(t).map(option => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  );
}

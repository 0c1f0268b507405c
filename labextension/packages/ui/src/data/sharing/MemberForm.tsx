import { useState, type FormEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/Button';
import { Field } from '../../kit/Field';
import { SelectField } from '../../kit/SelectField';
import type { Folder, FolderPermission } from '../types';
import { permissionOptions } from '../words';
import { useSharing } from './useSharing';

/** Says what one member of a project may do in one of its folders. */
export function MemberForm({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const { share } = useSharing();
  const [user, setUser] = useState('');
  const [permission, setPermission] = useState<FolderPermission>('ro');
  const [busy, setBusy] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    if (user.trim() === '') {
      return;
    }
    setBusy(true);
    void share(folder.id, user.trim(), permission).then(done => {
      setBusy(false);
      setUser(done ? '' : user);
    });
  };
  return (
    <form className="bai-invite" onSubmit={submit} noValidate>
      <Field label={t('data.member')} value={user} onChange={setUser} />
      <SelectField
        label={t('data.mayDo')}
        value={permission}
        options={permissionOptions(t)}
        onChange={value => setPermission(value as FolderPermission)}
      />
      <Button kind="primary" submits busy={busy}>
        {t('data.set')}
      </Button>
    </form>
  );
}

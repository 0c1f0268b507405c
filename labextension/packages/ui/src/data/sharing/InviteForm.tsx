import { useState, type FormEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { Send } from 'lucide-react';
import { Button } from '../../kit/Button';
import { Field } from '../../kit/Field';
import { SelectField } from '../../kit/SelectField';
import type { Folder, FolderPermission } from '../types';
import { permissionOptions } from '../words';
import { useSharing } from './useSharing';
import { useWording } from '../../wording';

/** Offers a folder to people, by their names or addresses. */
export function InviteForm({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const { invite } = useSharing();
  const [people, setPeople] = useState('');
  const [permission, setPermission] = useState<FolderPermission>('ro');
  const [busy, setBusy] = useState(false);
  const say = useWording();
  const [error, setError] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    const users = [...new Set(people.split(/[\s,;]+/).filter(Boolean))];
    if (users.length === 0) {
      setError(t('data.nobodyNamed'));
      return;
    }
    setBusy(true);
    void invite(folder.id, users, permission).then(failed => {
      setBusy(false);
      // Who could not be invited stays in the field, to be corrected.
      setPeople(failed === null ? people : failed.map(each => each.user).join(', '));
      setError(failed?.map(each => say(each.reason)).join(' · ') ?? '');
    });
  };
  return (
    <form className="bai-invite" onSubmit={submit} noValidate>
      <Field
        label={t('data.people')}
        help={t('data.peopleHelp')}
        value={people}
        onChange={setPeople}
        error={error || undefined}
      />
      <SelectField
        label={t('data.mayDo')}
        value={permission}
        options={permissionOptions(t)}
        onChange={value => setPermission(value as FolderPermission)}
      />
      <Button kind="primary" submits busy={busy} icon={<Send size={16} aria-hidden />}>
        {t('data.invite')}
      </Button>
    </form>
  );
}

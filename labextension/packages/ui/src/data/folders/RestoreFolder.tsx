import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import type { Folder } from '../types';
import { useFolderForm } from './useFolderForm';
import { useFolderVerbs } from './useFolderVerbs';

interface Props {
  folder: Folder;
  onClose(): void;
}

/** Takes a folder out of the trash, by another name if its own is taken. */
export function RestoreFolder({ folder, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const verbs = useFolderVerbs();
  const form = useFolderForm(
    { name: folder.name },
    async ({ name }) => {
      await verbs.restoreAs(folder, name.trim());
      host.notify('success', t('data.restored', { count: 1 }));
    },
    onClose
  );
  return (
    <FormDialog
      open
      title={t('data.restoreTitle', { name: folder.name })}
      submit={t('data.restore')}
      cancel={t('data.cancel')}
      busy={form.busy}
      error={form.error}
      blocked={form.values.name.trim() ? undefined : t('data.nameMissing')}
      onSubmit={form.submit}
      onClose={onClose}
    >
      <Field
        label={t('data.name')}
        value={form.values.name}
        help={t('data.restoreHelp')}
        error={form.errorOf('name')}
        onChange={name => form.set('name', name)}
      />
    </FormDialog>
  );
}

import { useTranslation } from 'react-i18next';
import { writeAmount } from '../../amounts';
import { useHost } from '../../host';
import { Checkbox } from '../../kit/Checkbox';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { SelectField } from '../../kit/SelectField';
import type { Folder, FolderPermission } from '../types';
import { permissionOptions } from '../words';
import { useFolderForm } from './useFolderForm';
import { useFolderVerbs, type FolderChange } from './useFolderVerbs';

interface Props {
  folder: Folder;
  onClose(): void;
}

/** Another name, or other rules, for a folder. */
export function ChangeFolder({ folder, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const verbs = useFolderVerbs();
  const most = Number(folder.max_size);
  const initial = {
    name: folder.name,
    permission: folder.permission as FolderPermission,
    cloneable: folder.cloneable,
    max_size: most > 0 ? writeAmount('mem', most) : ''
  };
  const form = useFolderForm(
    initial,
    async values => {
      const change: FolderChange = {};
      // What is not touched is not sent: somebody else may change it meanwhile.
      if (values.name.trim() !== initial.name) {
        change.name = values.name.trim();
      }
      if (values.permission !== initial.permission) {
        change.permission = values.permission;
      }
      if (values.cloneable !== initial.cloneable) {
        change.cloneable = values.cloneable;
      }
      if (values.max_size.trim() !== initial.max_size) {
        change.max_size = values.max_size.trim() || '-1';
      }
      await verbs.change(folder.id, change);
      host.notify('success', t('data.changed', { name: values.name.trim() }));
    },
    onClose
  );
  const { values, set, errorOf } = form;
  return (
    <FormDialog
      open
      size="medium"
      title={t('data.changeTitle', { name: folder.name })}
      submit={t('data.save')}
      cancel={t('data.cancel')}
      busy={form.busy}
      error={form.error}
      blocked={values.name.trim() ? undefined : t('data.nameMissing')}
      onSubmit={form.submit}
      onClose={onClose}
    >
      <Field
        label={t('data.name')}
        value={values.name}
        help={t('data.renameHelp')}
        error={errorOf('name')}
        onChange={name => set('name', name)}
      />
      <SelectField
        label={t('data.permission')}
        value={values.permission}
        options={permissionOptions(t)}
        help={t('data.permissionHelp')}
        error={errorOf('permission')}
        onChange={permission => set('permission', permission as FolderPermission)}
      />
      <Field
        label={t('data.maxSize')}
        optional={t('data.optional')}
        value={values.max_size}
        help={t('data.maxSizeHelp')}
        error={errorOf('max_size')}
        onChange={size => set('max_size', size)}
      />
      <Checkbox
        label={t('data.cloneable')}
        help={t('data.cloneableHelp')}
        checked={values.cloneable}
        onChange={cloneable => set('cloneable', cloneable)}
      />
    </FormDialog>
  );
}

import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { SelectField } from '../../kit/SelectField';
import type { Folder } from '../types';
import { useRights } from '../useAsker';
import { useFolderForm } from './useFolderForm';
import { useFolderVerbs } from './useFolderVerbs';

interface Props {
  folder: Folder;
  onClose(): void;
}

/** A copy of a folder as a new one, which appears when it is whole. */
export function CloneFolder({ folder, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts = [], name: me, projects } = useRights();
  const verbs = useFolderVerbs();
  const offered = hosts.filter(each => each.permissions.includes('create-vfolder'));
  const form = useFolderForm(
    { name: `${folder.name}-copy`, host: folder.host, project: '' },
    async values => {
      await verbs.clone(folder.id, {
        name: values.name.trim(),
        host: values.host,
        project: values.project || null,
        usage_mode: null,
        permission: null,
        cloneable: false
      });
      host.notify('info', t('data.cloning', { name: values.name.trim() }));
    },
    onClose
  );
  const { values, set, errorOf } = form;
  return (
    <FormDialog
      open
      size="medium"
      title={t('data.cloneTitle', { name: folder.name })}
      submit={t('data.clone')}
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
        help={t('data.cloneHelp')}
        error={errorOf('name')}
        onChange={name => set('name', name)}
      />
      <SelectField
        label={t('data.owner')}
        value={values.project}
        options={[
          { value: '', text: t('data.ownerMe', { name: me }) },
          ...projects.map(value => ({ value, text: t('data.ownerProject', { name: value }) }))
        ]}
        error={errorOf('project')}
        onChange={project => set('project', project)}
      />
      <SelectField
        label={t('data.host')}
        value={values.host}
        options={offered.map(each => each.name)}
        error={errorOf('host')}
        onChange={name => set('host', name)}
      />
    </FormDialog>
  );
}

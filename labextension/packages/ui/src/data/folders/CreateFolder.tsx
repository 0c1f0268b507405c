import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Checkbox } from '../../kit/Checkbox';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { SelectField } from '../../kit/SelectField';
import type { FolderPermission } from '../types';
import { useRights } from '../useAsker';
import { permissionOptions } from '../words';
import { useFolderForm } from './useFolderForm';
import { useFolderVerbs } from './useFolderVerbs';

const MODES = ['general', 'data', 'model'] as const;

interface Props {
  onClose(): void;
}

export function CreateFolder({ onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts = [], name: me, projects } = useRights();
  const verbs = useFolderVerbs();
  const offered = hosts.filter(each => each.permissions.includes('create-vfolder'));
  const usual = offered.find(each => each.is_default)?.name ?? offered[0]?.name ?? '';
  const form = useFolderForm(
    {
      name: '',
      usage_mode: 'general',
      host: '',
      project: '',
      permission: 'rw' as FolderPermission,
      cloneable: false,
      max_size: ''
    },
    async values => {
      const folder = await verbs.create({
        name: values.name.trim(),
        usage_mode: values.usage_mode,
        host: values.host || usual,
        permission: values.permission,
        cloneable: values.cloneable,
        ...(values.project ? { project: values.project } : {}),
        ...(values.max_size.trim() ? { max_size: values.max_size.trim() } : {})
      });
      host.notify('success', t('data.created', { name: folder.name }));
    },
    onClose
  );
  const { values, set, errorOf } = form;
  return (
    <FormDialog
      open
      size="medium"
      title={t('data.createTitle')}
      submit={t('data.create')}
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
        onChange={name => set('name', name)}
        help={t(values.name.startsWith('.') ? 'data.dotHelp' : 'data.nameHelp')}
        error={errorOf('name')}
      />
      <SelectField
        label={t('data.usageMode')}
        value={values.usage_mode}
        options={MODES.map(value => ({ value, text: t(`data.usage.${value}`) }))}
        error={errorOf('usage_mode')}
        onChange={mode => set('usage_mode', mode)}
      />
      <SelectField
        label={t('data.owner')}
        value={values.project}
        options={[
          { value: '', text: t('data.ownerMe', { name: me }) },
          ...projects.map(value => ({ value, text: t('data.ownerProject', { name: value }) }))
        ]}
        help={values.project ? t('data.ownerHelp') : undefined}
        error={errorOf('project')}
        onChange={project => set('project', project)}
      />
      <SelectField
        label={t('data.host')}
        value={values.host || usual}
        options={offered.map(each => each.name)}
        error={errorOf('host') ?? (offered.length ? undefined : t('data.noHost'))}
        onChange={name => set('host', name)}
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
        placeholder="50g"
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

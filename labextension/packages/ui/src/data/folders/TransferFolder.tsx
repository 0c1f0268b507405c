import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { Segmented } from '../../kit/Segmented';
import type { Folder } from '../types';
import { useFolderForm } from './useFolderForm';
import { useFolderVerbs } from './useFolderVerbs';

interface Props {
  folder: Folder;
  onClose(): void;
}

/** Another owner for a folder: a user, or a project. */
export function TransferFolder({ folder, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const verbs = useFolderVerbs();
  const form = useFolderForm(
    { kind: 'user' as 'user' | 'project', user: '', project: '' },
    async ({ kind, user, project }) => {
      await verbs.transfer(folder.id, {
        user: kind === 'user' ? user.trim() : null,
        project: kind === 'project' ? project.trim() : null
      });
      host.notify('success', t('data.transferred', { name: folder.name }));
    },
    onClose
  );
  const { values, set, errorOf } = form;
  const { kind } = values;
  return (
    <FormDialog
      open
      title={t('data.transferTitle', { name: folder.name })}
      submit={t('data.transfer')}
      cancel={t('data.cancel')}
      busy={form.busy}
      error={form.error}
      blocked={values[kind].trim() ? undefined : t('data.nameMissing')}
      onSubmit={form.submit}
      onClose={onClose}
    >
      <Segmented
        label={t('data.newOwner')}
        value={kind}
        options={(['user', 'project'] as const).map(value => ({
          value,
          text: t(`data.to.${value}`)
        }))}
        onChange={chosen => set('kind', chosen)}
      />
      <Field
        key={kind}
        label={t(`data.to.${kind}`)}
        value={values[kind]}
        help={t('data.transferHelp')}
        error={errorOf(kind)}
        onChange={value => set(kind, value)}
      />
    </FormDialog>
  );
}

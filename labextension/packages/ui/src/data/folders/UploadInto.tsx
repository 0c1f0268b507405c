/** Which folder somebody's files shall go into: there is where they are dropped. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { FormDialog } from '../../kit/FormDialog';
import { SelectField } from '../../kit/SelectField';
import { LoadError } from '../../LoadError';
import { refuseFile } from '../access';
import { dataKeys } from '../keys';
import { explorerAt } from '../paths';
import { useRights } from '../useAsker';
import { loadFolders } from './load';

/** Whoever has more finds theirs in the list. */
const OFFERED = 100;

interface Props {
  onNew(): void;
  onClose(): void;
}

export function UploadInto({ onNew, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { hosts } = useRights();
  const [chosen, setChosen] = useState('');
  const { data, error, refetch } = useQuery({
    queryKey: [...dataKeys.folders, 'upload'],
    queryFn: ({ signal }) =>
      loadFolders(
        host,
        'active',
        { search: '', filters: {}, order: 'name', after: '', limit: OFFERED },
        signal
      )
  });
  const open = data?.items.filter(folder => refuseFile('add', folder, hosts) === null);
  const into = chosen || open?.[0]?.id || '';
  const none = open?.length === 0;
  return (
    <FormDialog
      open
      title={t('data.uploadTitle')}
      submit={t(none ? 'data.new' : 'data.open')}
      cancel={t('data.cancel')}
      blocked={open ? undefined : t('state.loading')}
      error={error ? <LoadError error={error} onRetry={() => void refetch()} /> : null}
      onSubmit={() => {
        onClose();
        if (none) {
          onNew();
        } else {
          host.open(explorerAt(into));
        }
      }}
      onClose={onClose}
    >
      {none ? (
        <p>{t('data.uploadNowhere')}</p>
      ) : (
        <SelectField
          label={t('data.uploadInto')}
          value={into}
          options={open?.map(({ id, name }) => ({ value: id, text: name })) ?? []}
          help={t('data.uploadHelp')}
          onChange={setChosen}
        />
      )}
    </FormDialog>
  );
}

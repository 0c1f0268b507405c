import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { faultOf, join } from '../paths';

interface Props {
  place: string;
  onClose(): void;
  onMake(path: string): Promise<boolean>;
}

export function NewDirectory({ place, onClose, onMake }: Props): JSX.Element {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [busy, setBusy] = useState(false);
  const fault = faultOf(name);
  return (
    <FormDialog
      open
      title={t('files.newFolder')}
      submit={t('files.make')}
      cancel={t('data.cancel')}
      busy={busy}
      blocked={fault === 'empty' ? t('files.fault.empty') : undefined}
      onClose={onClose}
      onSubmit={() => {
        if (fault) {
          return;
        }
        setBusy(true);
        void onMake(join(place, name)).then(made => {
          setBusy(false);
          if (made) {
            onClose();
          }
        });
      }}
    >
      <Field
        label={t('files.name')}
        value={name}
        onChange={setName}
        error={fault && name ? t(`files.fault.${fault}`) : undefined}
      />
    </FormDialog>
  );
}

/** The two ways in which an image ends: taken off offer, or removed from its registry. */
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { TypedConfirm } from '../../kit/TypedConfirm';
import { ask } from '../client';
import type { Shown } from '../noun';
import { useAct } from '../useAct';

interface Props {
  row: Shown<'images'>;
  onClose(): void;
}

const endOf =
  (verb: 'forget' | 'untag') =>
  ({ row, onClose }: Props): JSX.Element => {
    const { t } = useTranslation();
    const host = useHost();
    const act = useAct(['noun', 'images'], ['list', 'images']);
    const path = `/api/images/${encodeURIComponent(row.id)}/${verb}`;
    const word = row.tag || row.name;
    return (
      <TypedConfirm
        open
        title={t(`deeds.${verb}.title`, { name: row.name })}
        word={word}
        label={t('deeds.purge.label', { word })}
        blocked={t('deeds.purge.blocked')}
        confirm={t(`deeds.${verb}.text`)}
        cancel={t('form.cancel')}
        busy={act.busy}
        error={act.refused}
        onCancel={onClose}
        onConfirm={() =>
          void act
            .send(() => ask(host, 'POST', path), t(`deeds.${verb}.done`, { name: row.name }))
            .then(done => done && onClose())
        }
      >
        <p>{t(`deeds.${verb}.says`)}</p>
      </TypedConfirm>
    );
  };

export const ForgetImage = endOf('forget');
export const UntagImage = endOf('untag');

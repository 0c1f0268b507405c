/** Secrets of keypairs: with a new key, and new ones for a key there is. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { ConfirmDialog } from '../../kit/ConfirmDialog';
import { ask } from '../client';
import type { Shown } from '../noun';
import { useAct } from '../useAct';
import { SecretDialog } from './SecretDialog';

interface Props {
  row: Shown<'keypairs'>;
  onClose(): void;
}

export function NewSecret({ row, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  return (
    <SecretDialog
      title={t('secret.keyTitle')}
      text={t('secret.keyText')}
      secrets={[
        { label: t('secret.accessKey'), value: row.name },
        { label: t('secret.secretKey'), value: row.secret ?? '' }
      ]}
      onClose={onClose}
    />
  );
}

export function IssueSecret({ row, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(['noun', 'keypairs']);
  const [issued, setIssued] = useState<Shown<'keypairs'> | null>(null);
  const issue = (): Promise<boolean> =>
    act.send(async () => {
      const path = `/api/keypairs/${encodeURIComponent(row.id)}/secret`;
      setIssued(await ask<Shown<'keypairs'>>(host, 'POST', path));
    });
  return issued ? (
    <NewSecret row={issued} onClose={onClose} />
  ) : (
    <ConfirmDialog
      open
      title={t('secret.issueTitle', { name: row.name })}
      confirm={t('secret.issue')}
      cancel={t('form.cancel')}
      busy={act.busy}
      error={act.refused}
      onConfirm={() => void issue()}
      onCancel={onClose}
    >
      <p>{t('secret.issueText')}</p>
    </ConfirmDialog>
  );
}

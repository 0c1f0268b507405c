/** Making a person: with a password account, unless another login lets them in. */
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { Banner } from '../../kit/States';
import { TriangleAlert } from 'lucide-react';
import type { Schemas } from '@backendai/api';
import type { Host } from '../../host';
import { ask, changeNoun, createNoun, readNoun } from '../client';
import type { AnyRow, Shown } from '../noun';
import { SecretDialog } from './SecretDialog';
import { useWording } from '../../wording';

/** What the service takes with an account; everything else is said afterwards. */
const OF_ACCOUNT = ['name', 'full_name', 'email', 'domain', 'project', 'role'];

async function create(host: Host, body: Record<string, unknown>): Promise<Shown<'users'>> {
  const { account = true, ...given } = body;
  if (account === false) {
    return (await createNoun(host, 'users', given)) as unknown as Shown<'users'>;
  }
  const isTheirs = ([key, value]: [string, unknown]): boolean =>
    OF_ACCOUNT.includes(key) && value !== null;
  const first = Object.fromEntries(Object.entries(given).filter(isTheirs));
  const rest = Object.fromEntries(
    Object.entries(given).filter(([key]) => !OF_ACCOUNT.includes(key))
  );
  const { name, password } = await ask<Schemas['NewAccount']>(host, 'POST', '/api/accounts', {
    body: first
  });
  let row: AnyRow = await readNoun(host, 'users', name);
  let problem = '';
  if (Object.keys(rest).length) {
    try {
      row = await changeNoun(host, 'users', row.id, rest);
    } catch (error) {
      // The password is shown nowhere else: it comes first, and the reason with it.
      problem = error instanceof Error ? error.message : String(error);
    }
  }
  return { ...row, password, problem } as unknown as Shown<'users'>;
}

function Made({ row, onClose }: { row: Shown<'users'>; onClose(): void }): JSX.Element | null {
  const { t } = useTranslation();
  const say = useWording();
  const { password, problem } = row as { password?: string; problem?: string };
  useEffect(() => {
    if (password === undefined) {
      onClose();
    }
  }, [password, onClose]);
  return password === undefined ? null : (
    <SecretDialog
      title={t('secret.passwordTitle', { name: row.name })}
      text={t('secret.passwordText')}
      secrets={[{ label: t('secret.password'), value: password }]}
      onClose={onClose}
    >
      {problem ? (
        <Banner tone="warning" icon={<TriangleAlert size={18} />}>
          {t('secret.butNot', { problem: say(problem) })}
        </Banner>
      ) : null}
    </SecretDialog>
  );
}

export const NewAccount = Object.assign(Made, { create });

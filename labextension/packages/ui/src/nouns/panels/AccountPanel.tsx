/** Somebody's password account, where accounts are the service's own. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { KeyRound, LockOpen, LogOut, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { ConfirmDialog } from '../../kit/ConfirmDialog';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { exactly } from '../../times';
import { accountKey, accountQuery } from '../account';
import { ask } from '../client';
import type { Shown } from '../noun';
import { useAct } from '../useAct';
import { Flag } from '../Value';
import { SecretDialog } from './SecretDialog';

export function AccountPanel({ row }: { row: Shown<'users'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(accountQuery(host, row.name));
  if (error) {
    return <LoadError error={error} stale={false} onRetry={() => void refetch()} />;
  }
  if (data === undefined) {
    return <Skeleton rows={1} label={t('state.loading')} />;
  }
  return data === null ? (
    <p className="bai-help">{t('account.none')}</p>
  ) : (
    <Account name={row.name} state={data} />
  );
}

function Account({
  name,
  state
}: {
  name: string;
  state: Schemas['AccountState'];
}): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const act = useAct(accountKey(name));
  const [asked, setAsked] = useState(false);
  const [password, setPassword] = useState<string | null>(null);
  const path = (verb: string): string => `/api/accounts/${encodeURIComponent(name)}/${verb}`;
  const does = (verb: string, done: string) => () =>
    void act.run(() => ask(host, 'POST', path(verb)), done);
  const reset = (): Promise<boolean> =>
    act.run(async () => {
      setAsked(false);
      setPassword((await ask<Schemas['NewAccount']>(host, 'POST', path('reset'))).password);
    });
  return (
    <>
      <dl className="bai-facts">
        <div>
          <dt>{t('account.changedAt')}</dt>
          <dd>
            {state.changed_at ? (
              <RelativeTime iso={state.changed_at} language={language} />
            ) : (
              t('account.never')
            )}
          </dd>
        </div>
        <div>
          <dt>{t('account.mustChange')}</dt>
          <dd>
            <Flag on={state.must_change} />
          </dd>
        </div>
        <div>
          <dt>{t('account.locked')}</dt>
          <dd>
            {state.locked_until
              ? t('account.lockedUntil', { moment: exactly(state.locked_until, language) })
              : t('account.notLocked')}
          </dd>
        </div>
      </dl>
      <div className="bai-panel-actions">
        <Button
          icon={<KeyRound size={16} aria-hidden />}
          disabled={act.busy}
          onClick={() => setAsked(true)}
        >
          {t('account.reset')}
        </Button>
        {state.must_change ? null : (
          <Button
            icon={<RotateCcw size={16} aria-hidden />}
            disabled={act.busy}
            onClick={does('require-change', t('account.requireChangeDone', { name }))}
          >
            {t('account.requireChange')}
          </Button>
        )}
        {state.locked_until ? (
          <Button
            icon={<LockOpen size={16} aria-hidden />}
            disabled={act.busy}
            onClick={does('unlock', t('account.unlockDone', { name }))}
          >
            {t('account.unlock')}
          </Button>
        ) : null}
        <Button
          icon={<LogOut size={16} aria-hidden />}
          disabled={act.busy}
          onClick={does('end-logins', t('account.endLoginsDone', { name }))}
        >
          {t('account.endLogins')}
        </Button>
      </div>
      <ConfirmDialog
        open={asked}
        title={t('account.resetTitle', { name })}
        confirm={t('account.reset')}
        cancel={t('form.cancel')}
        onConfirm={() => void reset()}
        onCancel={() => setAsked(false)}
      >
        <p>{t('account.resetText')}</p>
      </ConfirmDialog>
      {password === null ? null : (
        <SecretDialog
          title={t('secret.passwordTitle', { name })}
          text={t('secret.passwordText')}
          secrets={[{ label: t('secret.password'), value: password }]}
          onClose={() => setPassword(null)}
        />
      )}
    </>
  );
}

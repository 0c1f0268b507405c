/** The SSH key that one's sessions find: made here, or brought from elsewhere. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { KeyRound } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { ConfirmDialog } from '../kit/ConfirmDialog';
import { FormDialog } from '../kit/FormDialog';
import { RelativeTime } from '../kit/RelativeTime';
import { EmptyState, Skeleton } from '../kit/States';
import { TextArea } from '../kit/TextArea';
import { LoadError } from '../LoadError';
import { ask } from '../nouns/client';
import { CopyButton, SecretDialog } from '../nouns/panels/SecretDialog';
import { useAct } from '../nouns/useAct';

type SSHKey = Schemas['SSHKey'];
type Asked = 'make' | 'bring' | 'remove';

export function SSHKeyPanel({ keypair }: { keypair: string }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const path = `/api/keypairs/${encodeURIComponent(keypair)}/ssh-key`;
  const queryKey = ['ssh-key', keypair];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => ask<SSHKey>(host, 'GET', path, { signal })
  });
  const act = useAct(queryKey);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [text, setText] = useState('');
  const [made, setMade] = useState<SSHKey | null>(null);
  const close = (): void => {
    setAsked(null);
    act.forget();
    // What stood in the field is a secret.
    setText('');
  };
  // The first key is made without a dialog, so its refusal is a notice.
  const make = (): Promise<boolean> =>
    (asked ? act.send : act.run)(async () => {
      setMade(await ask<SSHKey>(host, 'POST', path));
      close();
    });
  const bring = (): Promise<boolean> =>
    act.send(async () => {
      await ask(host, 'PUT', path, { body: { private_key: text } });
      close();
    }, t('sshKey.brought'));
  const remove = (): Promise<boolean> =>
    act.send(async () => {
      await ask(host, 'DELETE', path);
      close();
    }, t('sshKey.removed'));
  const has = Boolean(data?.public_key);
  return (
    <>
      {error ? (
        <LoadError error={error} stale={data !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data && !has ? (
        <EmptyState
          icon={<KeyRound size={32} />}
          title={t('sshKey.emptyTitle')}
          text={t('sshKey.emptyText')}
        />
      ) : null}
      {data && has ? <Facts sshKey={data} /> : null}
      {data ? (
        <div className="bai-panel-actions">
          <Button
            kind={has ? 'plain' : 'primary'}
            busy={act.busy}
            onClick={() => (has ? setAsked('make') : void make())}
          >
            {t('sshKey.make')}
          </Button>
          <Button onClick={() => setAsked('bring')}>{t('sshKey.bring')}</Button>
          {has ? (
            <Button kind="quiet" onClick={() => setAsked('remove')}>
              {t('sshKey.remove')}
            </Button>
          ) : null}
        </div>
      ) : null}
      <FormDialog
        open={asked === 'bring'}
        size="medium"
        title={t('sshKey.bringTitle')}
        submit={t('form.save')}
        cancel={t('form.cancel')}
        busy={act.busy}
        error={act.refused}
        blocked={text.trim() ? undefined : t('sshKey.paste')}
        onSubmit={() => void bring()}
        onClose={close}
      >
        <TextArea
          label={t('sshKey.private')}
          help={t('sshKey.bringHelp')}
          value={text}
          rows={10}
          code
          placeholder={'-----BEGIN OPENSSH PRIVATE KEY-----\n'}
          onChange={setText}
        />
      </FormDialog>
      <ConfirmDialog
        open={asked === 'make' || asked === 'remove'}
        title={t(asked === 'remove' ? 'sshKey.removeTitle' : 'sshKey.makeTitle')}
        confirm={t(asked === 'remove' ? 'sshKey.remove' : 'sshKey.make')}
        cancel={t('form.cancel')}
        busy={act.busy}
        error={act.refused}
        onConfirm={() => void (asked === 'remove' ? remove() : make())}
        onCancel={close}
      >
        <p>{t('sshKey.before')}</p>
      </ConfirmDialog>
      {made ? (
        <SecretDialog
          title={t('sshKey.madeTitle')}
          text={t('sshKey.madeText')}
          secrets={[
            { label: t('sshKey.public'), value: made.public_key ?? '' },
            { label: t('sshKey.private'), value: made.private_key ?? '' }
          ]}
          onClose={() => setMade(null)}
        />
      ) : null}
    </>
  );
}

function Facts({ sshKey }: { sshKey: SSHKey }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { kind, fingerprint, public_key: text = '', changed_at: changed } = sshKey;
  return (
    <dl className="bai-secrets">
      <div>
        <dt>{t('sshKey.public')}</dt>
        <dd>
          <code>{text}</code>
          <CopyButton label={t('sshKey.public')} value={text} />
        </dd>
      </div>
      <div>
        <dt>{t('sshKey.fingerprint')}</dt>
        <dd>
          <code>{`${kind} ${fingerprint}`}</code>
        </dd>
      </div>
      <div>
        <dt>{t('sshKey.changed')}</dt>
        <dd>{changed ? <RelativeTime iso={changed} language={language} /> : '–'}</dd>
      </div>
    </dl>
  );
}

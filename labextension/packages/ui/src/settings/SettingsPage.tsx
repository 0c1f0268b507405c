/** What is one's own: language and colours, keys, dotfiles, script, password. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { showAmount } from '../amounts';
import { bytesOf } from '../dotfiles';
import { useHost } from '../host';
import { LANGUAGES, type Language } from '../i18n';
import { Button } from '../kit/Button';
import { DataTable } from '../kit/DataTable';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { Meter } from '../kit/Meter';
import { Segmented } from '../kit/Segmented';
import { SelectField } from '../kit/SelectField';
import { EmptyState, Skeleton } from '../kit/States';
import { Switch } from '../kit/Switch';
import { TextArea } from '../kit/TextArea';
import { Tabs } from '../kit/Tabs';
import { useColorMode } from '../kit/Theme';
import { RelativeTime } from '../kit/RelativeTime';
import { useAskBeforeLeaving } from '../useAskBeforeLeaving';
import { LoadError } from '../LoadError';
import { accountQuery } from '../nouns/account';
import { KeypairBadges } from '../nouns/Badges';
import { ask, listNouns, nounKeys } from '../nouns/client';
import { DotfilesEditor } from '../nouns/panels/DotfilesEditor';
import { IssueSecret, NewSecret } from '../nouns/panels/secrets';
import { useAct } from '../nouns/useAct';
import { WhyButton } from '../nouns/WhyButton';
import { PageHeading } from '../PageHeading';
import { useLooksOnly } from '../pages/useLooksOnly';
import { SSHKeyPanel } from './SSHKeyPanel';
import { meQuery } from '../queries';

type Keypair = Schemas['Keypair'];
const TABS = ['general', 'keys', 'ssh', 'dotfiles', 'script', 'password'] as const;
type Tab = (typeof TABS)[number];

export default function SettingsPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const account = useQuery(accountQuery(host, me?.name ?? '')).data;
  const [address, setAddress] = useAddress();
  // Monitors have no sessions, and no keys with which to start one.
  const looksOnly = useLooksOnly();
  const lacks = {
    keys: looksOnly,
    ssh: looksOnly,
    dotfiles: looksOnly,
    script: looksOnly,
    password: !account
  };
  const offered = TABS.filter(tab => !lacks[tab as keyof typeof lacks]);
  const asked = address.get('tab') as Tab | null;
  const tab = asked && offered.includes(asked) ? asked : 'general';
  return (
    <>
      <PageHeading title={t('settings.title')} />
      <Tabs
        label={t('settings.title')}
        value={tab}
        tabs={offered.map(key => ({ key, text: t(`settings.tabs.${key}`) }))}
        onChange={key => setAddress({ tab: key }, { replace: true })}
      >
        <div className="bai-settings">
          {tab === 'general' ? <General me={me} /> : null}
          {tab === 'keys' && me ? <Keys name={me.name} /> : null}
          {tab === 'ssh' && me ? <OfKeypair name={me.name} what="ssh" /> : null}
          {tab === 'dotfiles' && me ? <OfKeypair name={me.name} what="dotfiles" /> : null}
          {tab === 'script' && me ? <OfKeypair name={me.name} what="script" /> : null}
          {tab === 'password' && account ? <Password state={account} /> : null}
        </div>
      </Tabs>
    </>
  );
}

function General({ me }: { me: Schemas['Me'] | undefined }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { mode, setMode } = useColorMode();
  return (
    <div className="bai-sections">
      <section className="bai-card">
        <h2>{t('settings.looks')}</h2>
        {host.setLanguage ? (
          <SelectField
            label={t('header.language')}
            value={host.language}
            options={Object.entries(LANGUAGES).map(([value, text]) => ({ value, text }))}
            onChange={language => host.setLanguage?.(language as Language)}
          />
        ) : null}
        {host.kind === 'console' ? (
          <div className="bai-field">
            <span className="bai-field-title">{t('settings.colours')}</span>
            <Segmented
              label={t('settings.colours')}
              value={mode}
              options={[
                { value: 'light', text: t('settings.light') },
                { value: 'dark', text: t('settings.dark') }
              ]}
              onChange={setMode}
            />
          </div>
        ) : (
          <p className="bai-help">{t('settings.byLab')}</p>
        )}
        <p className="bai-help">{t('settings.kept')}</p>
      </section>
      <section className="bai-card">
        <h2>{t('settings.you')}</h2>
        {me ? (
          <dl className="bai-facts">
            {[
              [t('fields.any.name'), me.name],
              [
                t('fields.any.role'),
                me.roles
                  .map(role => t(`values.role.${role}`, { defaultValue: role }))
                  .join(', ')
              ],
              [t('fields.any.domain'), me.domain],
              [t('settings.projects'), (me.projects ?? []).join(', ') || '–']
            ].map(([title, value]) => (
              <div key={title}>
                <dt>{title}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        ) : (
          <Skeleton rows={2} label={t('state.loading')} />
        )}
      </section>
    </div>
  );
}

const keysQuery = (host: ReturnType<typeof useHost>, name: string) => ({
  queryKey: [...nounKeys.all('keypairs'), 'of', name],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const page = await listNouns(host, 'keypairs', { user: name, limit: 100 }, signal);
    return page.items as unknown as Keypair[];
  },
  enabled: host.visible
});

function Keys({ name }: { name: string }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery(keysQuery(host, name));
  const act = useAct(nounKeys.all('keypairs'));
  const [open, setOpen] = useState(false);
  const [description, setDescription] = useState('');
  const [made, setMade] = useState<Keypair | null>(null);
  const [issued, setIssued] = useState<Keypair | null>(null);
  const create = (): Promise<boolean> =>
    act.send(async () => {
      const body = { user: name, description: description.trim() };
      setMade(await ask<Keypair>(host, 'POST', '/api/keypairs', { body }));
      setOpen(false);
      setDescription('');
    });
  const toggle = (key: Keypair, active: boolean): Promise<boolean> => {
    const change = (is_active: boolean): Promise<unknown> =>
      ask(host, 'PATCH', `/api/keypairs/${key.id}`, { body: { is_active } });
    return act.run(
      () => change(active),
      t(active ? 'deeds.activate.done' : 'deeds.deactivate.done', { name: key.name }),
      () => void act.run(() => change(!active))
    );
  };
  return (
    <section className="bai-card">
      <div className="bai-card-head">
        <h2>{t('settings.tabs.keys')}</h2>
        <span className="bai-heading-actions">
          <Button icon={<Plus size={16} aria-hidden />} onClick={() => setOpen(true)}>
            {t('nouns.keypairs.new')}
          </Button>
        </span>
      </div>
      <p className="bai-help">{t('settings.keysText')}</p>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data?.length === 0 ? (
        <EmptyState
          icon={<KeyRound size={32} />}
          title={t('nouns.keypairs.emptyTitle')}
          text={t('nouns.keypairs.emptyText')}
        />
      ) : null}
      {data?.length ? (
        <DataTable
          caption={t('settings.tabs.keys')}
          rows={data}
          rowKey={key => key.id}
          columns={[
            {
              key: 'name',
              title: t('fields.keypairs.name'),
              head: true,
              cell: key => (
                <span className="bai-status">
                  <code>{key.name}</code>
                  <span className="bai-badges">
                    <KeypairBadges row={key} />
                  </span>
                </span>
              )
            },
            {
              key: 'description',
              title: t('fields.any.description'),
              cell: key => key.description || '–'
            },
            {
              key: 'used',
              title: t('fields.keypairs.last_used_at'),
              cell: key =>
                key.last_used_at ? (
                  <RelativeTime iso={key.last_used_at} language={host.language} />
                ) : (
                  t('account.never')
                )
            },
            {
              key: 'active',
              title: t('fields.any.is_active'),
              cell: key =>
                key.is_default ? (
                  <span className="bai-reason">{t('settings.defaultKey')}</span>
                ) : (
                  <Switch
                    label={t('settings.accepted')}
                    checked={key.is_active !== false}
                    onChange={active => void toggle(key, active)}
                  />
                )
            },
            {
              key: 'actions',
              title: t('list.actions'),
              quiet: true,
              align: 'end',
              cell: key => (
                <Button
                  size="small"
                  kind="quiet"
                  aria-label={t('settings.secretOf', { name: key.name })}
                  onClick={() => setIssued(key)}
                >
                  {t('deeds.issueSecret.text')}
                </Button>
              )
            }
          ]}
        />
      ) : null}
      <FormDialog
        open={open}
        title={t('nouns.keypairs.new')}
        submit={t('form.create')}
        cancel={t('form.cancel')}
        busy={act.busy}
        error={act.refused}
        onSubmit={() => void create()}
        onClose={() => {
          setOpen(false);
          act.forget();
        }}
      >
        <Field
          label={t('fields.any.description')}
          help={t('help.keypairs.description')}
          value={description}
          onChange={setDescription}
        />
      </FormDialog>
      {made ? <NewSecret row={made} onClose={() => setMade(null)} /> : null}
      {issued ? <IssueSecret row={issued} onClose={() => setIssued(null)} /> : null}
    </section>
  );
}

/** Sessions take SSH key, dotfiles and script from the default keypair. */
function OfKeypair(props: { name: string; what: 'ssh' | 'dotfiles' | 'script' }): JSX.Element {
  const { t } = useTranslation();
  const { name, what } = props;
  const { data, error, refetch } = useQuery(keysQuery(useHost(), name));
  const key = data?.find(each => each.is_default);
  return (
    <section className="bai-card">
      <h2>{t(`settings.tabs.${what}`)}</h2>
      <p className="bai-help">{t(`settings.${what}Text`)}</p>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={3} label={t('state.loading')} /> : null}
      {data && !key ? <p>{t('settings.noKey')}</p> : null}
      {key && what === 'ssh' ? <SSHKeyPanel keypair={key.id} /> : null}
      {key && what === 'dotfiles' ? (
        <DotfilesEditor of={`/api/keypairs/${key.id}`} writes />
      ) : null}
      {key && what === 'script' ? <Script key={key.revision} keypair={key} /> : null}
    </section>
  );
}

const MOST_SCRIPT = 64 << 10;

function Script({ keypair }: { keypair: Keypair }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(nounKeys.all('keypairs'));
  const saved = keypair.bootstrap_script ?? '';
  const [text, setText] = useState(saved);
  const size = bytesOf(text);
  const dirty = text !== saved;
  const leaving = useAskBeforeLeaving(dirty, () => setText(saved));
  const path = `/api/keypairs/${keypair.id}`;
  const put = (script: string): Promise<unknown> =>
    ask(host, 'PATCH', path, {
      body: { bootstrap_script: script },
      headers: { 'If-Match': `"${keypair.revision}"` }
    });
  const wrong =
    size > MOST_SCRIPT
      ? t('wrong.tooLong', { most: MOST_SCRIPT })
      : text.includes('\0')
        ? t('dotfiles.wrong.letters')
        : undefined;
  return (
    <>
      <TextArea
        label={t('settings.tabs.script')}
        value={text}
        rows={14}
        code
        error={wrong}
        placeholder={'#!/bin/bash\nset -e\n'}
        onChange={setText}
      />
      <Meter
        label={t('settings.size')}
        text={t('dotfiles.of', {
          used: showAmount('mem', size, host.language),
          most: showAmount('mem', MOST_SCRIPT, host.language)
        })}
        value={size}
        max={MOST_SCRIPT}
      />
      <div className="bai-panel-actions">
        <WhyButton
          kind="primary"
          busy={act.busy}
          why={
            dirty
              ? wrong === undefined
                ? undefined
                : t('form.correctFirst')
              : t('form.noChanges')
          }
          onClick={() => void act.run(() => put(text), t('settings.scriptSaved'))}
        >
          {t('form.save')}
        </WhyButton>
        {dirty ? (
          <Button kind="quiet" onClick={() => setText(saved)}>
            {t('form.discard')}
          </Button>
        ) : null}
      </div>
      {leaving.dialog}
    </>
  );
}

function Password({ state }: { state: Schemas['AccountState'] }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(['account', state.name]);
  const [old, setOld] = useState('');
  const [next, setNext] = useState('');
  const [again, setAgain] = useState('');
  const differs = again !== '' && again !== next;
  const change = async (): Promise<void> => {
    const body = { old_password: old, new_password: next };
    const ok = await act.run(
      () => ask(host, 'POST', '/api/accounts/password', { body }),
      t('settings.passwordChanged')
    );
    if (ok) {
      setOld('');
      setNext('');
      setAgain('');
    }
  };
  return (
    <section className="bai-card">
      <h2>{t('settings.tabs.password')}</h2>
      <p className="bai-help">
        {state.changed_at ? (
          <>
            {t('account.changedAt')}{' '}
            <RelativeTime iso={state.changed_at} language={host.language} />.{' '}
          </>
        ) : null}
        {t('settings.passwordText')}
      </p>
      <form
        className="bai-narrow"
        onSubmit={event => {
          event.preventDefault();
          void change();
        }}
      >
        <Field
          label={t('settings.oldPassword')}
          type="password"
          autoComplete="current-password"
          value={old}
          onChange={setOld}
        />
        <Field
          label={t('settings.newPassword')}
          type="password"
          autoComplete="new-password"
          help={t('settings.passwordHelp')}
          value={next}
          onChange={setNext}
        />
        <Field
          label={t('settings.newPasswordAgain')}
          type="password"
          autoComplete="new-password"
          error={differs ? t('settings.differs') : undefined}
          value={again}
          onChange={setAgain}
        />
        <div className="bai-panel-actions">
          <WhyButton
            kind="primary"
            submits
            busy={act.busy}
            why={old && next && next === again ? undefined : t('bulkUsers.blocked')}
          >
            {t('settings.changePassword')}
          </WhyButton>
        </div>
      </form>
    </section>
  );
}

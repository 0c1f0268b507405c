/** To whom a resource group is open. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { DoorOpen, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Field } from '../../kit/Field';
import { SelectField } from '../../kit/SelectField';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { meQuery } from '../../queries';
import { ask } from '../client';
import type { Shown } from '../noun';
import { ReferenceField } from '../ReferenceField';
import { isSuperadmin } from '../roles';
import { useAct } from '../useAct';
import { WhyButton } from '../WhyButton';

type Access = Schemas['GroupAccess'];
type Kind = Access['kind'];
const KINDS: readonly Kind[] = ['domain', 'project', 'keypair'];

export function AccessPanel({ row }: { row: Shown<'resource-groups'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const writes = me !== undefined && isSuperadmin(me);
  const path = `/api/resource-groups/${encodeURIComponent(row.id)}/access`;
  const key = ['access', row.id] as const;
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Access[]>(host, 'GET', path, { signal }),
    enabled: host.visible
  });
  const act = useAct(key);
  const change = (body: object): Promise<unknown> => ask(host, 'POST', path, { body });
  const deny = ({ kind, id, name }: Access): Promise<boolean> => {
    const target = { kind, name: id };
    return act.run(
      () => change({ deny: [target] }),
      t('access.closed', { name }),
      () => void act.run(() => change({ allow: [target] }))
    );
  };
  return (
    <>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={1} label={t('state.loading')} /> : null}
      {data?.length === 0 ? <p className="bai-help">{t('access.nobody')}</p> : null}
      <ul className="bai-tokens">
        {data?.map(access => (
          <li key={`${access.kind} ${access.id}`}>
            <span className="bai-help-inline">{t(`access.${access.kind}`)}</span> {access.name}
            {writes ? (
              <button
                type="button"
                className="bai-square"
                aria-label={t('access.close', { name: access.name })}
                disabled={act.busy}
                onClick={() => void deny(access)}
              >
                <X size={14} aria-hidden />
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {writes ? (
        <Allow
          busy={act.busy}
          onAllow={(kind, name) =>
            act.run(() => change({ allow: [{ kind, name }] }), t('access.opened', { name }))
          }
        />
      ) : null}
    </>
  );
}

function Allow(props: {
  busy: boolean;
  onAllow(kind: Kind, name: string): Promise<boolean>;
}): JSX.Element {
  const { t } = useTranslation();
  const { busy, onAllow } = props;
  const [kind, setKind] = useState<Kind>('domain');
  const [name, setName] = useState('');
  const choose = (chosen: string): void => {
    setKind(chosen as Kind);
    setName('');
  };
  return (
    <div className="bai-inline-form">
      <SelectField
        label={t('access.kind')}
        value={kind}
        options={KINDS.map(value => ({ value, text: t(`access.${value}`) }))}
        onChange={choose}
      />
      {kind === 'keypair' ? (
        <Field label={t('secret.accessKey')} value={name} onChange={setName} />
      ) : (
        <ReferenceField
          noun={kind === 'domain' ? 'domains' : 'projects'}
          label={t(`access.${kind}`)}
          draft={name}
          none={t('form.choose')}
          onChange={setName}
        />
      )}
      <WhyButton
        icon={<DoorOpen size={16} aria-hidden />}
        busy={busy}
        why={name.trim() ? undefined : t('bulkUsers.blocked')}
        onClick={() => void onAllow(kind, name.trim()).then(done => done && setName(''))}
      >
        {t('access.open')}
      </WhyButton>
    </div>
  );
}

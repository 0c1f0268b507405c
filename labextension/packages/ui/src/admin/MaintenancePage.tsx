/** What operators look at now and then: whether what is counted is what is. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import {
  CircleCheck,
  Gauge,
  HardDrive,
  Link2,
  RefreshCw,
  TriangleAlert,
  Warehouse
} from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { number } from '../amounts';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { DataTable } from '../kit/DataTable';
import { RelativeTime } from '../kit/RelativeTime';
import { Banner, Skeleton } from '../kit/States';
import { TypedConfirm } from '../kit/TypedConfirm';
import { choicesQuery } from '../nouns/choices';
import { ask } from '../nouns/client';
import { RescanState } from '../nouns/panels/RescanPanel';
import { Refusal } from '../nouns/Refusal';
import { isSuperadmin } from '../nouns/roles';
import { useAct } from '../nouns/useAct';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { usePolling } from '../stream';
import { FromService } from '../FromService';

export default function MaintenancePage(): JSX.Element {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  return (
    <>
      <PageHeading title={t('maintenance.title')} />
      <p className="bai-lead">{t('maintenance.about')}</p>
      <div className="bai-stack">
        <UsageCheck />
        <AuditCheck />
        {me && isSuperadmin(me) ? <Rescans /> : null}
        {me && isSuperadmin(me) ? <StorageCare /> : null}
      </div>
    </>
  );
}

function useCheck<Answer>(method: 'GET' | 'POST', path: string) {
  const host = useHost();
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const run = async (body?: object): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setAnswer(await ask<Answer>(host, method, path, body ? { body } : {}));
    } catch (reason) {
      setError(reason instanceof Error ? reason : new Error(String(reason)));
    } finally {
      setBusy(false);
    }
  };
  return { busy, answer, error, run };
}

function Check(props: {
  name: string;
  icon: ReactNode;
  busy: boolean;
  error: Error | null;
  button: ReactNode;
  children?: ReactNode;
}): JSX.Element {
  const { t } = useTranslation();
  const { name, icon, error, button, children } = props;
  const id = `check-${name}`;
  return (
    <section className="bai-card bai-check" aria-labelledby={id}>
      <div className="bai-check-head">
        <span className="bai-check-icon" aria-hidden>
          {icon}
        </span>
        <div>
          <h2 id={id}>{t(`maintenance.${name}.title`)}</h2>
          <p className="bai-help">{t(`maintenance.${name}.text`)}</p>
        </div>
        <span className="bai-check-actions">{button}</span>
      </div>
      {error ? <Refusal error={error} /> : null}
      <div aria-live="polite">{children}</div>
    </section>
  );
}

function Fine({ children }: { children: ReactNode }): JSX.Element {
  return (
    <Banner tone="success" icon={<CircleCheck size={18} />}>
      {children}
    </Banner>
  );
}

function UsageCheck(): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const check = useCheck<Schemas['UsageReport']>('GET', '/api/usage/verify');
  const { answer, busy, run } = check;
  const compared = number(answer?.compared ?? 0, language, 0);
  return (
    <Check
      name="usage"
      icon={<Gauge size={20} />}
      {...check}
      button={
        <Button busy={busy} disabled={busy} onClick={() => void run()}>
          {t('maintenance.usage.run')}
        </Button>
      }
    >
      {answer ? (
        answer.breaches.length === 0 && answer.drift === 0 ? (
          <Fine>{t('maintenance.usage.fine', { compared })}</Fine>
        ) : (
          <Banner tone="error" icon={<TriangleAlert size={18} />}>
            <span className="bai-line">
              {t('maintenance.usage.broken', { compared, drift: answer.drift })}
            </span>
            <ul className="bai-plain-list">
              {answer.breaches.map(breach => (
                <li key={breach}>{breach}</li>
              ))}
            </ul>
          </Banner>
        )
      ) : null}
    </Check>
  );
}

function AuditCheck(): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const check = useCheck<Schemas['AuditReport']>('POST', '/api/audit/verify');
  const { answer, busy, run } = check;
  const rows = number(answer?.rows ?? 0, language, 0);
  return (
    <Check
      name="audit"
      icon={<Link2 size={20} />}
      {...check}
      button={
        <Button busy={busy} disabled={busy} onClick={() => void run()}>
          {t('maintenance.audit.run')}
        </Button>
      }
    >
      {answer ? (
        answer.ok ? (
          <Fine>
            <span className="bai-line">{t('maintenance.audit.fine', { rows })}</span>
            {answer.head ? (
              <span className="bai-line">
                {t('maintenance.audit.head', { seq: answer.head.seq })}{' '}
                <code>{answer.head.hash}</code>
              </span>
            ) : null}
          </Fine>
        ) : (
          <Banner tone="error" icon={<TriangleAlert size={18} />}>
            <span className="bai-line">
              {t('maintenance.audit.broken', { rows, found: answer.found })}
            </span>
            <ul className="bai-plain-list">
              {answer.breaks.slice(0, 20).map(each => (
                <li key={`${each.seq} ${each.kind}`}>
                  {each.seq}: <FromService text={each.detail} />
                </li>
              ))}
            </ul>
          </Banner>
        )
      ) : null}
    </Check>
  );
}

function Rescans(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(['rescan']);
  const registries = useQuery(choicesQuery(host, 'registries', '', { is_active: 'true' })).data;
  const remote = registries?.items.filter(each => each.type !== 'local') ?? [];
  const [followed, setFollowed] = useState(false);
  const start = (): Promise<boolean> =>
    act.run(async () => {
      setFollowed(true);
      await Promise.all(
        remote.map(each => ask(host, 'POST', `/api/registries/${each.id}/rescan`, { body: {} }))
      );
    });
  return (
    <Check
      name="rescan"
      icon={<Warehouse size={20} />}
      busy={act.busy}
      error={null}
      button={
        remote.length ? (
          <Button
            icon={<RefreshCw size={16} aria-hidden />}
            busy={act.busy}
            disabled={act.busy}
            onClick={() => void start()}
          >
            {t('maintenance.rescan.run', { count: remote.length })}
          </Button>
        ) : null
      }
    >
      {registries && !remote.length ? (
        <p className="bai-help">{t('maintenance.rescan.none')}</p>
      ) : null}
      {followed
        ? remote.map(each => <Followed key={each.id} id={each.id} name={each.name} />)
        : null}
    </Check>
  );
}

function Followed({ id, name }: { id: string; name: string }): JSX.Element {
  const host = useHost();
  const { data } = useQuery({
    queryKey: ['rescan', id],
    queryFn: ({ signal }) =>
      ask<Schemas['RescanStatus']>(host, 'GET', `/api/registries/${id}/rescan`, { signal }),
    refetchInterval: usePolling(),
    enabled: host.visible
  });
  return (
    <div className="bai-followed">
      <h3>
        <PageLink to={`/admin/registries/${id}`}>{name}</PageLink>
      </h3>
      {data ? <RescanState rescan={data} /> : null}
    </div>
  );
}

type Remains = Schemas['RemainsPage'];

function StorageCare(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const check = useCheck<Schemas['StorageCheck']>('POST', '/api/storage-remains/check');
  const { answer, busy, run } = check;
  const [asked, setAsked] = useState(false);
  const polling = usePolling();
  const remains = useQuery({
    queryKey: ['storage-remains', answer],
    queryFn: ({ signal }) =>
      ask<Remains>(host, 'GET', '/api/storage-remains', {
        params: { query: { limit: 100 } },
        signal
      }),
    refetchInterval: query => (query.state.data?.running ? polling : false),
    enabled: host.visible
  });
  const items = remains.data?.items ?? [];
  const due = items.filter(each => each.is_due && each.removable !== 'no');
  const word = String(due.length);
  return (
    <Check
      name="storage"
      icon={<HardDrive size={20} />}
      {...check}
      button={
        <>
          <Button busy={busy} disabled={busy} onClick={() => void run({})}>
            {t('maintenance.storage.run')}
          </Button>
          {due.length ? (
            <Button kind="danger" disabled={busy} onClick={() => setAsked(true)}>
              {t('maintenance.storage.repair')}
            </Button>
          ) : null}
        </>
      }
    >
      {!remains.data && !remains.error ? (
        <Skeleton rows={1} label={t('state.loading')} />
      ) : null}
      {answer?.silent.length ? (
        <Banner tone="warning" icon={<TriangleAlert size={18} />}>
          {t('maintenance.storage.silent', { hosts: answer.silent.join(', ') })}
        </Banner>
      ) : null}
      {answer?.removed ? (
        <Fine>{t('maintenance.storage.removed', { count: answer.removed })}</Fine>
      ) : null}
      {remains.data && !items.length ? (
        answer ? (
          <Fine>{t('maintenance.storage.fine')}</Fine>
        ) : (
          <p className="bai-help">{t('maintenance.storage.nothing')}</p>
        )
      ) : null}
      {items.length ? (
        <DataTable
          caption={t('maintenance.storage.title')}
          rows={items}
          rowKey={each => `${each.host} ${each.scope} ${each.kind} ${each.name}`}
          columns={[
            {
              key: 'name',
              title: t('maintenance.storage.what'),
              head: true,
              cell: each => (
                <code>
                  {each.scope ? `${each.scope}/` : ''}
                  {each.name}
                </code>
              )
            },
            { key: 'host', title: t('storage.host'), cell: each => each.host },
            {
              key: 'reason',
              title: t('maintenance.storage.why'),
              cell: each => <FromService text={each.reason} />
            },
            {
              key: 'found',
              title: t('maintenance.storage.found'),
              cell: each => <RelativeTime iso={each.found_at} language={language} />
            },
            {
              key: 'then',
              title: t('maintenance.storage.then'),
              cell: each => t(`maintenance.storage.removable.${each.removable}`)
            }
          ]}
        />
      ) : null}
      <TypedConfirm
        open={asked}
        title={t('maintenance.storage.repairTitle', { count: due.length })}
        word={word}
        label={t('deeds.purge.label', { word })}
        blocked={t('deeds.purge.blocked')}
        confirm={t('maintenance.storage.repair')}
        cancel={t('form.cancel')}
        busy={busy}
        onCancel={() => setAsked(false)}
        onConfirm={() => void run({ repair: true }).then(() => setAsked(false))}
      >
        <p>{t('maintenance.storage.repairText')}</p>
      </TypedConfirm>
    </Check>
  );
}

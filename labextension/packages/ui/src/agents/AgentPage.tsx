/** One node: how full it is, what it takes, and what is to become of it. */
import { ApiError, type Agent, type Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { ArrowLeft, CircleArrowDown, Undo2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Checkbox } from '../kit/Checkbox';
import { DataTable } from '../kit/DataTable';
import { RelativeTime } from '../kit/RelativeTime';
import { Banner, Skeleton } from '../kit/States';
import { Switch } from '../kit/Switch';
import { TextArea } from '../kit/TextArea';
import { LoadError } from '../LoadError';
import { ask } from '../nouns/client';
import { linesOf } from '../nouns/kinds';
import { ReferenceField } from '../nouns/ReferenceField';
import { isSuperadmin } from '../nouns/roles';
import { useAct } from '../nouns/useAct';
import { WhyButton } from '../nouns/WhyButton';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { MissingPage } from '../pages/Missing';
import type { PageProps } from '../pages/page';
import { agentQuery, keys, meQuery } from '../queries';
import { SessionBadge } from '../sessions/SessionStatus';
import { describeSlots } from '../slots';
import { usePolling } from '../stream';
import { exactly } from '../times';
import { AgentBadges, AgentIsolation, AgentMeters, AgentSeen } from './AgentParts';
import { pathOf, useDrain } from './useDrain';

export function AgentPage({ params }: PageProps): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const {
    data: agent,
    error,
    refetch
  } = useQuery(agentQuery(host, params.id ?? '', usePolling()));
  const me = useQuery(meQuery(host)).data;
  if (error instanceof ApiError && error.status === 404) {
    return <MissingPage />;
  }
  return (
    <>
      <p className="bai-back">
        <ArrowLeft size={16} aria-hidden />
        <PageLink to="/nodes">{t('nodes.title')}</PageLink>
      </p>
      {error ? (
        <LoadError error={error} stale={agent !== undefined} onRetry={() => void refetch()} />
      ) : null}
      {!agent && !error ? <Skeleton rows={4} label={t('state.loading')} /> : null}
      {agent ? <Shown agent={agent} writes={me !== undefined && isSuperadmin(me)} /> : null}
    </>
  );
}

function Shown({ agent, writes }: { agent: Agent; writes: boolean }): JSX.Element {
  const { t } = useTranslation();
  return (
    <>
      <PageHeading title={agent.name} beside={<AgentBadges agent={agent} />}>
        {writes ? <DrainButton agent={agent} /> : null}
      </PageHeading>
      {agent.drain ? <DrainState agent={agent} /> : null}
      <div className="bai-sections">
        <section className="bai-card">
          <h2>{t('nodes.use')}</h2>
          <AgentMeters agent={agent} />
        </section>
        <section className="bai-card">
          <h2>{t('nodes.isolation')}</h2>
          <AgentSeen agent={agent} />
          <AgentIsolation agent={agent} />
        </section>
      </div>
      {writes ? <Takes agent={agent} /> : null}
      <Sessions agent={agent} />
    </>
  );
}

function DrainButton({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { drain, undrain, busy, dialog } = useDrain();
  return (
    <>
      {agent.drain ? (
        <Button
          icon={<Undo2 size={16} aria-hidden />}
          busy={busy}
          onClick={() => void undrain(agent)}
        >
          {t('nodes.undrain')}
        </Button>
      ) : (
        <Button icon={<CircleArrowDown size={16} aria-hidden />} onClick={() => drain(agent)}>
          {t('nodes.drain')}
        </Button>
      )}
      {dialog}
    </>
  );
}

function DrainState({ agent }: { agent: Agent }): JSX.Element | null {
  const { t } = useTranslation();
  const { language } = useHost();
  const { drain } = agent;
  if (!drain) {
    return null;
  }
  const { sessions = 0, endless = 0, last_end: last, due, late } = drain;
  return (
    <Banner tone={late ? 'error' : 'warning'} icon={<CircleArrowDown size={18} />}>
      <strong className="bai-line">
        {t('nodes.drainedBy', { by: drain.by })}{' '}
        <RelativeTime iso={drain.since} language={language} />
      </strong>
      <span className="bai-line">{drain.reason}</span>
      <span className="bai-line">{t('nodes.left', { count: sessions })}</span>
      {last ? (
        <span className="bai-line">
          {t('nodes.lastEnd', { moment: exactly(last, language) })}
        </span>
      ) : null}
      {endless ? (
        <span className="bai-line">{t('nodes.endless', { count: endless })}</span>
      ) : null}
      {due ? (
        <span className="bai-line">
          {t(late ? 'nodes.late' : 'nodes.due', { moment: exactly(due, language) })}
        </span>
      ) : null}
    </Banner>
  );
}

const writeLabels = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');

/** `rack=a1` on each line; null if one is none. */
export function readLabels(text: string): Record<string, string> | null {
  const found: Record<string, string> = {};
  for (const each of linesOf(text)) {
    const at = each.indexOf('=');
    if (at < 1) {
      return null;
    }
    found[each.slice(0, at).trim()] = each.slice(at + 1).trim();
  }
  return found;
}

function Takes({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(...keys.nodes);
  const { name } = agent;
  const [group, setGroup] = useState(agent.resource_group ?? '');
  const [force, setForce] = useState(false);
  const [labels, setLabels] = useState(writeLabels(agent.labels ?? {}));
  const read = readLabels(labels);
  const change = (body: object): Promise<unknown> =>
    ask(host, 'PATCH', pathOf(agent), { body });
  const before = agent.labels ?? {};
  const gone = Object.keys(before).filter(label => read && !(label in read));
  const relabel = (): Promise<boolean> =>
    act.run(
      () =>
        change({ labels: { ...read, ...Object.fromEntries(gone.map(each => [each, ''])) } }),
      t('form.saved', { name }),
      () => void act.run(() => change({ labels: before }))
    );
  const toggle = (schedulable: boolean): Promise<boolean> =>
    act.run(
      () => change({ schedulable }),
      t(schedulable ? 'nodes.opened' : 'nodes.closedNow', { name }),
      () => void act.run(() => change({ schedulable: !schedulable }))
    );
  return (
    <section className="bai-card bai-panel-card">
      <h2>{t('nodes.takes')}</h2>
      <div className="bai-field">
        <Switch
          label={t('nodes.schedulable')}
          checked={agent.schedulable}
          onChange={checked => void toggle(checked)}
        />
        <span className="bai-help">{t('nodes.schedulableHelp')}</span>
      </div>
      <div className="bai-inline-form">
        <ReferenceField
          noun="resource-groups"
          label={t('fields.any.resource_group')}
          draft={group}
          onChange={setGroup}
        />
        <Checkbox label={t('nodes.force')} checked={force} onChange={setForce} />
        <WhyButton
          busy={act.busy}
          why={
            !group || group === (agent.resource_group ?? '') ? t('form.noChanges') : undefined
          }
          onClick={() =>
            void act.run(
              () => change({ resource_group: group, force }),
              t('form.saved', { name }),
              () => void act.run(() => change({ resource_group: agent.resource_group, force }))
            )
          }
        >
          {t('nodes.move')}
        </WhyButton>
      </div>
      <div className="bai-inline-form">
        <TextArea
          label={t('nodes.labels')}
          help={t('nodes.labelsHelp')}
          value={labels}
          rows={3}
          code
          error={read ? undefined : t('nodes.labelsWrong')}
          onChange={setLabels}
        />
        <WhyButton
          busy={act.busy}
          why={
            read
              ? labels === writeLabels(before)
                ? t('form.noChanges')
                : undefined
              : t('form.correctFirst')
          }
          onClick={() => void relabel()}
        >
          {t('form.save')}
        </WhyButton>
      </div>
    </section>
  );
}

function Sessions({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const { data, error, refetch } = useQuery({
    queryKey: [...keys.onNode, agent.id],
    queryFn: ({ signal }) =>
      ask<Schemas['SessionPage']>(host, 'GET', '/api/sessions', {
        params: { query: { owner: '*', status: 'live', agent: agent.name, limit: 100 } },
        signal
      }),
    refetchInterval: polling,
    enabled: host.visible
  });
  return (
    <section className="bai-card bai-panel-card">
      <h2>{t('nodes.sessions')}</h2>
      {error ? <LoadError error={error} stale={false} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Skeleton rows={2} label={t('state.loading')} /> : null}
      {data?.items.length === 0 ? <p className="bai-help">{t('nodes.noSessions')}</p> : null}
      {data?.items.length ? (
        <DataTable
          caption={t('nodes.sessions')}
          rows={data.items}
          rowKey={session => session.id}
          columns={[
            {
              key: 'name',
              title: t('sessions.name'),
              head: true,
              cell: session => (
                <PageLink className="bai-name" to={`/sessions/${session.id}`}>
                  {session.name}
                </PageLink>
              )
            },
            { key: 'owner', title: t('sessions.owner'), cell: session => session.owner },
            {
              key: 'status',
              title: t('sessions.status'),
              cell: session => <SessionBadge session={session} />
            },
            {
              key: 'slots',
              title: t('sessions.resources'),
              cell: session => describeSlots(session.slots, t, host.language)
            },
            {
              key: 'ends',
              title: t('nodes.ends'),
              cell: session =>
                session.deadline_at ? exactly(session.deadline_at, host.language) : '–'
            }
          ]}
        />
      ) : null}
    </section>
  );
}

/** What pages show of a node, each piece by itself. */
import type { Agent } from '@backendai/api';
import { CircleAlert, CircleCheck, CircleOff, CirclePause, TriangleAlert } from 'lucide-react';
import { useCallback } from 'react';
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount, sortSlots } from '../amounts';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { Meter } from '../kit/Meter';
import { RelativeTime } from '../kit/RelativeTime';
import { slotTitle } from '../slots';

const LOOKS = {
  ALIVE: { tone: 'success', Icon: CircleCheck },
  SUSPECT: { tone: 'warning', Icon: TriangleAlert },
  LOST: { tone: 'error', Icon: CircleAlert },
  TERMINATED: { tone: 'neutral', Icon: CircleOff }
} as const;

export function AgentBadges({
  agent
}: {
  agent: Pick<Agent, 'status' | 'schedulable'>;
}): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon } = LOOKS[agent.status] ?? LOOKS.SUSPECT;
  return (
    <>
      <Badge tone={tone} icon={<Icon size={14} />}>
        {t(`nodes.${agent.status}`, { defaultValue: agent.status })}
      </Badge>
      {agent.schedulable ? null : (
        <Badge tone="neutral" icon={<CirclePause size={14} />}>
          {t('nodes.closed')}
        </Badge>
      )}
    </>
  );
}

export function AgentSeen({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const { version, architecture, last_seen_at: seen } = agent;
  return (
    <p className="bai-help">
      {t('nodes.version', { version, architecture })}
      {seen ? (
        <>
          {' · '}
          {t('nodes.seen')} <RelativeTime iso={seen} language={language} />
        </>
      ) : null}
    </p>
  );
}

export function AgentMeters({
  agent
}: {
  agent: Pick<Agent, 'capacity' | 'used'>;
}): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  return (
    <div className="bai-meters">
      {sortSlots(Object.keys(agent.capacity)).map(slot => {
        const total = parseAmount(slot, agent.capacity[slot] ?? '') ?? 0;
        const used = parseAmount(slot, agent.used[slot] ?? '0') ?? 0;
        const text = t('nodes.usedOf', {
          used: showAmount(slot, used, language),
          total: showAmount(slot, total, language)
        });
        return (
          <Meter key={slot} label={slotTitle(slot, t)} text={text} value={used} max={total} />
        );
      })}
    </div>
  );
}

/** `rack=a1, zone=b`, as a function of a node. */
export const labelsOf = ({ labels }: Agent): string =>
  Object.entries(labels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

/** Says what keeps people apart on a node: by a name, as `cgroup v2`, or in a word. */
export function useApart(): (word: string) => string {
  const { t } = useTranslation();
  return useCallback(word => t(`nodes.apart.${word}`, { defaultValue: word }), [t]);
}

/** What keeps people apart on a node, in a few words. */
export function useTier(): (agent: Agent) => string {
  const { t } = useTranslation();
  const apart = useApart();
  return useCallback(
    ({ isolation: { tier, multi_user: shared } }) =>
      `${apart(tier)} · ${t(shared ? 'nodes.multiUser' : 'nodes.singleUser')}`,
    [t, apart]
  );
}

/** How full a node is, as text: `cpu 1 of 4; mem 2 GiB of 8 GiB`. */
export function useUse(): (agent: Pick<Agent, 'capacity' | 'used'>) => string {
  const { t } = useTranslation();
  const { language } = useHost();
  return useCallback(
    ({ capacity, used }) =>
      sortSlots(Object.keys(capacity))
        .map(slot => {
          const [taken, total] = [used[slot] ?? '0', capacity[slot] ?? '0'].map(text =>
            showAmount(slot, parseAmount(slot, text) ?? 0, language)
          );
          return `${slot} ${t('nodes.usedOf', { used: taken, total })}`;
        })
        .join('; '),
    [t, language]
  );
}

export function AgentIsolation({ agent }: { agent: Agent }): JSX.Element {
  const { t } = useTranslation();
  const { runtime, limits, network } = agent.isolation;
  const apart = useApart();
  const labels = labelsOf(agent);
  const facts = [
    [t('nodes.isolation'), useTier()(agent)],
    [t('nodes.runtime'), runtime],
    [t('nodes.limits'), apart(limits)],
    [t('nodes.network'), apart(network)],
    ...(labels ? [[t('nodes.labels'), labels]] : [])
  ];
  return (
    <>
      <dl className="bai-facts bai-facts-compact">
        {facts.map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <AgentNotes agent={agent} />
    </>
  );
}

/** What a node wants said of how it keeps people apart. */
export function AgentNotes({ agent }: { agent: Agent }): JSX.Element | null {
  const { t } = useTranslation();
  const { notes = [] } = agent.isolation;
  return notes.length ? (
    <ul className="bai-notes" aria-label={t('nodes.notes')}>
      {notes.map(note => (
        <li key={note}>
          <TriangleAlert size={14} aria-hidden /> <FromService text={note} />
        </li>
      ))}
    </ul>
  ) : null;
}

import type { HeldDevice, SessionContainer, ShownSession } from '@backendai/api';
import type { TFunction } from 'i18next';
import { CircleAlert, CircleCheck, CircleStop, LoaderCircle } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { acceleratorName, parseAmount, showAmount } from '../amounts';
import { FromService } from '../FromService';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { DataTable, type Column } from '../kit/DataTable';
import { slotTitle } from '../slots';
import type { Tone } from './status';

const LOOKS: Record<string, { tone: Tone; Icon: typeof CircleCheck }> = {
  running: { tone: 'success', Icon: CircleCheck },
  exited: { tone: 'neutral', Icon: CircleStop },
  gone: { tone: 'neutral', Icon: CircleStop },
  stranded: { tone: 'error', Icon: CircleAlert }
};
const ON_ITS_WAY = { tone: 'progress', Icon: LoaderCircle } as const;
const FAILED = { tone: 'error', Icon: CircleAlert } as const;

/** The beginning of a long identifier, by which people tell devices apart. */
export function shorten(name: string): string {
  return name.replace(/^([A-Za-z]+-[0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '$1');
}

/** `A100 GPU-0badcafe`, and which part of it where it is not all of it. */
function describeDevice(held: HeldDevice, t: TFunction, language: string): string {
  const name = `${held.model} ${shorten(held.name)}`.trim();
  if (held.slices.length) {
    const slices = showRanges(held.slices);
    return t('containers.instance', { name, profile: acceleratorName(held.slot), slices });
  }
  if (held.amount === '1') {
    return name;
  }
  const amount = parseAmount(held.slot, held.amount);
  const shown = amount === null ? held.amount : showAmount(held.slot, amount, language);
  return `${name} (${shown} ${slotTitle(held.slot, t)})`;
}

/** `[0, 1, 2, 5]` → `0–2, 5`. */
function showRanges(numbers: number[]): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === number - 1) {
      last[1] = number;
    } else {
      ranges.push([number, number]);
    }
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}

/** The containers of a session that has several, and how they reach each other. */
export function Containers({ session }: { session: ShownSession }): JSX.Element {
  const { t } = useTranslation();
  const columns = useColumns();
  const network = session.cluster_network;
  const containers = session.containers ?? [];
  return (
    <section aria-labelledby="containers" className="bai-containers">
      <h2 id="containers">{t('containers.title')}</h2>
      {network ? (
        <p className="bai-help">{network.charAt(0).toUpperCase() + network.slice(1)}.</p>
      ) : null}
      {containers.length ? (
        <div className="bai-card bai-table-card">
          <DataTable
            caption={t('containers.caption', { count: containers.length })}
            columns={columns}
            rows={containers}
            rowKey={container => container.id}
          />
        </div>
      ) : (
        <p className="bai-help">{t('containers.none', { count: session.cluster_size })}</p>
      )}
    </section>
  );
}

function useColumns(): Column<SessionContainer>[] {
  const { t } = useTranslation();
  const { language } = useHost();
  return [
    { key: 'name', title: t('containers.host'), head: true, cell: each => each.host },
    {
      key: 'role',
      title: t('containers.role'),
      cell: each => t(`containers.${each.role}`, { index: each.idx, defaultValue: each.role })
    },
    { key: 'status', title: t('sessions.status'), cell: each => <State container={each} /> },
    { key: 'node', title: t('sessions.node'), cell: each => each.node ?? '–' },
    {
      key: 'devices',
      title: t('session.devices'),
      cell: each => <Devices held={each.devices} language={language} />
    }
  ];
}

function State({ container }: { container: SessionContainer }): JSX.Element {
  const { t } = useTranslation();
  const { state, reason, exit_code: code } = container;
  const { tone, Icon } = code ? FAILED : (LOOKS[state] ?? ON_ITS_WAY);
  return (
    <span className="bai-status">
      <Badge
        tone={tone}
        icon={<Icon size={14} className={tone === 'progress' ? 'bai-spin' : ''} />}
      >
        {t(`containers.${state}`, { defaultValue: state })}
      </Badge>
      {code === null ? null : (
        <span className="bai-reason">{t('containers.exitCode', { code })}</span>
      )}
      <FromService text={reason} className="bai-reason" />
    </span>
  );
}

/** What a container has of accelerators, one line each. */
export function Devices({
  held,
  language
}: {
  held: HeldDevice[];
  language: string;
}): JSX.Element {
  const { t } = useTranslation();
  if (!held.length) {
    return <>–</>;
  }
  return (
    <span className="bai-lines">
      {held.map(each => {
        const text = describeDevice(each, t, language);
        return (
          <span key={`${each.name} ${each.slot} ${text}`} title={each.name}>
            {text}
          </span>
        );
      })}
    </span>
  );
}

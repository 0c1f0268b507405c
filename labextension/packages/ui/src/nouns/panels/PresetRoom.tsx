/** Whether a preset could start now, group by group. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, Hourglass } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { parseAmount, showAmount } from '../../amounts';
import { FromService } from '../../FromService';
import { useHost } from '../../host';
import { Badge } from '../../kit/Badge';
import { DataTable } from '../../kit/DataTable';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { slotTitle } from '../../slots';
import { ask } from '../client';
import type { Shown } from '../noun';

export function PresetRoom({ row }: { row: Shown<'presets'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery({
    queryKey: ['presets', 'check', row.id, row.revision],
    queryFn: ({ signal }) =>
      ask<Schemas['PresetCheck']>(host, 'GET', '/api/presets/check', { signal }),
    enabled: host.visible
  });
  if (error) {
    return <LoadError error={error} stale={false} onRetry={() => void refetch()} />;
  }
  if (!data) {
    return <Skeleton rows={2} label={t('state.loading')} />;
  }
  const mine = data.presets.find(
    preset => preset.name === row.name && preset.resource_group === (row.resource_group ?? null)
  );
  const groups = data.resource_groups.filter(
    group => !row.resource_group || group.name === row.resource_group
  );
  return (
    <>
      {mine ? (
        <p className="bai-room-verdict">
          <Badge
            tone={mine.allocatable ? 'success' : 'warning'}
            icon={mine.allocatable ? <CircleCheck size={14} /> : <Hourglass size={14} />}
          >
            {t(mine.allocatable ? 'presetRoom.now' : 'presetRoom.notNow')}
          </Badge>
          <FromService className="bai-reason" text={mine.reason} />
        </p>
      ) : (
        <p className="bai-help">{t('presetRoom.notOffered')}</p>
      )}
      {groups.length ? (
        <DataTable
          caption={t('nouns.presets.panels.room')}
          rows={groups}
          rowKey={group => group.name}
          columns={[
            {
              key: 'name',
              title: t('fields.any.resource_group'),
              head: true,
              cell: group => group.name
            },
            ...Object.keys(row.resource_slots).map(slot => ({
              key: slot,
              title: slotTitle(slot, t),
              align: 'end' as const,
              cell: (group: Schemas['GroupRoom']) => <Free group={group} slot={slot} />
            })),
            {
              key: 'fits',
              title: t('presetRoom.fits'),
              align: 'end',
              cell: group =>
                t('presetRoom.times', { count: timesIn(group, row.resource_slots) })
            }
          ]}
        />
      ) : null}
      <p className="bai-help">{t('presetRoom.help')}</p>
    </>
  );
}

function Free({ group, slot }: { group: Schemas['GroupRoom']; slot: string }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const show = (amounts: Record<string, string>): string =>
    showAmount(slot, parseAmount(slot, amounts[slot] ?? '0') ?? 0, language);
  return <>{t('presetRoom.free', { free: show(group.remaining), total: show(group.total) })}</>;
}

/** How many of these amounts are free in all; on how many nodes that is, nobody says. */
export function timesIn(
  group: Pick<Schemas['GroupRoom'], 'remaining'>,
  slots: Record<string, string>
): number {
  const each = Object.entries(slots).map(([slot, amount]) => {
    const asked = parseAmount(slot, amount) ?? 0;
    const free = parseAmount(slot, group.remaining[slot] ?? '0') ?? 0;
    return asked > 0 ? Math.floor(free / asked) : Infinity;
  });
  const least = Math.min(...each);
  return Number.isFinite(least) ? least : 0;
}

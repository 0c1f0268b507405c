/** Who waits in a resource group, in the order in which the scheduler tries them. */
import type { Schemas } from '@backendai/api';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import {
  ArrowUpDown,
  Hourglass,
  Pause,
  Play,
  Snowflake,
  Sun,
  TriangleAlert
} from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showDuration } from '../durations';
import { FromService } from '../FromService';
import { guess } from '../guess';
import { useHost } from '../host';
import { Button } from '../kit/Button';
import { Field } from '../kit/Field';
import { FormDialog } from '../kit/FormDialog';
import { RelativeTime } from '../kit/RelativeTime';
import { Banner } from '../kit/States';
import { listKey, NounList, type ListColumn, type ListOf, type Page } from '../lists';
import { ask } from '../nouns/client';
import { administers, isSuperadmin } from '../nouns/roles';
import { Siblings } from '../nouns/Siblings';
import { useAct } from '../nouns/useAct';
import { PageHeading } from '../PageHeading';
import { PageLink } from '../PageLink';
import { meQuery } from '../queries';
import { describeHold } from '../sessions/view';
import { useGroup } from './useGroup';

type Entry = Schemas['QueueEntry'];
type Queue = Schemas['QueuePage'];

export default function QueuePage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const { name, choice, instead } = useGroup();
  const dialogs = useQueueDialogs();
  const [freeze, setFreeze] = useState<Queue['freeze']>(null);
  const [fault, setFault] = useState('');
  const [length, setLength] = useState<number | null>(null);
  const writes = me !== undefined && administers(me);
  const list: ListOf<Entry> = {
    name: 'queue',
    caption: t('queue.caption', { group: name }),
    columns: useColumns(),
    filters: [],
    order: '',
    followed: true,
    queryKey: view => ['list', 'queue', name, view],
    load: async (view, signal) => {
      const query = { limit: view.limit, ...(view.after ? { after: view.after } : {}) };
      const path = `/api/resource-groups/${encodeURIComponent(name)}/queue`;
      const page = await ask<Queue>(host, 'GET', path, { params: { query }, signal });
      setFreeze(page.freeze ?? null);
      setFault(page.fault ?? '');
      setLength(page.length ?? null);
      return { items: page.items, next: page.next ? String(page.next) : null };
    },
    rowKey: entry => entry.id,
    rowName: entry => entry.name,
    bulk: writes
      ? [
          {
            key: 'priority',
            text: t('queue.setPriority'),
            icon: <ArrowUpDown size={16} aria-hidden />,
            run: rows => dialogs.priority(rows)
          },
          {
            key: 'hold',
            text: t('queue.hold'),
            icon: <Pause size={16} aria-hidden />,
            run: rows => dialogs.hold(rows)
          },
          {
            key: 'release',
            text: t('queue.release'),
            icon: <Play size={16} aria-hidden />,
            run: rows => dialogs.release(rows)
          }
        ]
      : [],
    empty: {
      icon: <Hourglass size={32} />,
      title: t('queue.emptyTitle'),
      text: t('queue.emptyText')
    }
  };
  return (
    <>
      <PageHeading title={t('queue.title')}>
        {name && me && isSuperadmin(me) ? (
          <FreezeButton group={name} freeze={freeze ?? null} />
        ) : null}
      </PageHeading>
      <Siblings path="/admin/scheduler" />
      <p className="bai-lead">{t('queue.about')}</p>
      {freeze ? (
        <Banner tone="warning" icon={<Snowflake size={18} />}>
          <span className="bai-line">
            {t('queue.frozen', { group: name, by: freeze.by })}{' '}
            <RelativeTime iso={freeze.since} language={host.language} />
          </span>
          <span className="bai-line">{freeze.reason}</span>
        </Banner>
      ) : null}
      {fault ? (
        <Banner tone="warning" icon={<TriangleAlert size={18} />}>
          <span className="bai-line">{t('queue.fault', { group: name })}</span>
          <FromService className="bai-line" text={fault} />
        </Banner>
      ) : null}
      {instead ?? (
        <NounList
          key={name}
          list={list}
          beside={
            <>
              {choice}
              {length === null ? null : (
                <span className="bai-help">{t('queue.length', { count: length })}</span>
              )}
            </>
          }
        />
      )}
      {dialogs.dialogs}
    </>
  );
}

function useColumns(): ListColumn<Entry>[] {
  const { t } = useTranslation();
  const { language } = useHost();
  return [
    {
      key: 'position',
      title: t('queue.position'),
      align: 'end',
      cell: entry => entry.position,
      csv: entry => String(entry.position)
    },
    {
      key: 'name',
      title: t('queue.session'),
      head: true,
      cell: entry => (
        <PageLink className="bai-name" to={`/sessions/${entry.id}`}>
          {entry.name}
        </PageLink>
      ),
      csv: entry => entry.name
    },
    {
      key: 'priority',
      title: t('queue.priority'),
      align: 'end',
      cell: entry => entry.priority,
      csv: entry => String(entry.priority)
    },
    {
      key: 'owner',
      title: t('queue.owner'),
      cell: entry => entry.owner,
      csv: entry => entry.owner
    },
    {
      key: 'project',
      title: t('queue.project'),
      cell: entry => entry.project,
      csv: entry => entry.project
    },
    {
      key: 'waited',
      title: t('queue.waited'),
      align: 'end',
      cell: entry => showDuration(entry.waited, language),
      csv: entry => String(entry.waited)
    },
    {
      key: 'reason',
      title: t('queue.reason'),
      cell: entry => (entry.reason ? <FromService text={entry.reason} /> : '–'),
      csv: entry => entry.reason
    }
  ];
}

interface Asked {
  what: 'priority' | 'hold';
  rows: Entry[];
  done(ok: boolean): void;
}

function useQueueDialogs() {
  const { t } = useTranslation();
  const host = useHost();
  const client = useQueryClient();
  const me = useQuery(meQuery(host)).data?.name;
  const act = useAct(['list', 'queue']);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [text, setText] = useState('');
  const open =
    (what: Asked['what']) =>
    (rows: Entry[]): Promise<boolean> =>
      new Promise(done => {
        setText(what === 'priority' ? String(rows[0]?.priority ?? 10) : '');
        setAsked({ what, rows, done });
      });
  const each = async (rows: Entry[], verb: string, body?: object): Promise<void> => {
    for (const { id } of rows) {
      await ask(host, 'POST', `/api/sessions/${id}/${verb}`, body ? { body } : {});
    }
  };
  /** Show at once what these rows will be; show what they are, should it be refused. */
  const foresee = async (
    rows: Entry[],
    changes: (row: Entry) => Partial<Entry>,
    run: () => Promise<boolean>
  ): Promise<boolean> => {
    const ids = new Set(rows.map(row => row.id));
    const takeBack = await guess<Page<Entry>>(client, { queryKey: listKey('queue') }, page => ({
      ...page,
      items: page.items.map(row => (ids.has(row.id) ? { ...row, ...changes(row) } : row))
    }));
    const ok = await run();
    if (!ok) {
      takeBack();
    }
    return ok;
  };
  const release = (rows: Entry[]): Promise<boolean> =>
    foresee(
      rows,
      () => ({ reason: '' }),
      () => act.run(() => each(rows, 'release'), t('queue.released', { count: rows.length }))
    );
  const prioritize = (rows: Entry[], of: (row: Entry) => number): Promise<void> => {
    const byPriority = new Map<number, string[]>();
    rows.forEach(row => byPriority.set(of(row), [...(byPriority.get(of(row)) ?? []), row.id]));
    return [...byPriority].reduce(async (before, [priority, sessions]) => {
      await before;
      const body = { sessions, priority };
      const answer = await ask<Schemas['SessionOutcomes']>(
        host,
        'POST',
        '/api/sessions/priority',
        { body }
      );
      const problem = answer.results.find(result => result.error)?.error;
      if (problem) {
        throw new Error(problem);
      }
    }, Promise.resolve());
  };
  const close = (ok: boolean): void => {
    asked?.done(ok);
    setAsked(null);
  };
  const submit = async (): Promise<void> => {
    if (!asked) {
      return;
    }
    const { what, rows } = asked;
    const count = rows.length;
    const reason = text.trim();
    const hold = (): Promise<boolean> =>
      act.run(
        () => each(rows, 'hold', { reason }),
        t('queue.held', { count }),
        () => void release(rows)
      );
    const reorder = (): Promise<boolean> =>
      act.run(
        () => prioritize(rows, () => Number(text)),
        t('queue.prioritized', { count, priority: text }),
        () => void act.run(() => prioritize(rows, row => row.priority))
      );
    const ok =
      what === 'hold'
        ? await foresee(rows, row => ({ reason: describeHold(reason, row.owner === me) }), hold)
        : await foresee(rows, () => ({ priority: Number(text) }), reorder);
    close(ok);
  };
  const number = Number(text);
  const fine =
    asked?.what === 'hold' ? text.trim() !== '' : /^\d+$/.test(text.trim()) && number <= 100;
  const dialogs = (
    <FormDialog
      open={asked !== null}
      title={t(asked?.what === 'hold' ? 'queue.holdTitle' : 'queue.priorityTitle', {
        count: asked?.rows.length ?? 0
      })}
      submit={t(asked?.what === 'hold' ? 'queue.hold' : 'queue.setPriority')}
      cancel={t('form.cancel')}
      busy={act.busy}
      blocked={
        fine ? undefined : t(asked?.what === 'hold' ? 'queue.giveReason' : 'queue.give100')
      }
      onSubmit={() => void submit()}
      onClose={() => close(false)}
    >
      {asked?.what === 'hold' ? (
        <Field
          label={t('queue.holdReason')}
          help={t('queue.reasonHelp')}
          value={text}
          onChange={setText}
        />
      ) : (
        <Field
          label={t('queue.priority')}
          help={t('queue.priorityHelp')}
          value={text}
          decimal
          onChange={setText}
        />
      )}
    </FormDialog>
  );
  return { priority: open('priority'), hold: open('hold'), release, dialogs };
}

function FreezeButton(props: { group: string; freeze: Queue['freeze'] | null }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { group, freeze } = props;
  const client = useQueryClient();
  const act = useAct(['list', 'queue']);
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const path = `/api/resource-groups/${encodeURIComponent(group)}`;
  const thaw = (): Promise<boolean> =>
    act.run(() => ask(host, 'POST', `${path}/unfreeze`), t('queue.unfrozen', { group }));
  const stop = async (): Promise<void> => {
    const ok = await act.send(
      () => ask(host, 'POST', `${path}/freeze`, { body: { reason: reason.trim() } }),
      t('queue.frozenDone', { group }),
      () => void thaw()
    );
    if (ok) {
      setOpen(false);
      setReason('');
      await client.invalidateQueries({ queryKey: ['list', 'queue'] });
    }
  };
  if (freeze) {
    return (
      <Button icon={<Sun size={16} aria-hidden />} busy={act.busy} onClick={() => void thaw()}>
        {t('queue.unfreeze')}
      </Button>
    );
  }
  return (
    <>
      <Button icon={<Snowflake size={16} aria-hidden />} onClick={() => setOpen(true)}>
        {t('queue.freeze')}
      </Button>
      <FormDialog
        open={open}
        title={t('queue.freezeTitle', { group })}
        submit={t('queue.freeze')}
        cancel={t('form.cancel')}
        busy={act.busy}
        error={act.refused}
        blocked={reason.trim() ? undefined : t('queue.giveReason')}
        onSubmit={() => void stop()}
        onClose={() => {
          setOpen(false);
          act.forget();
        }}
      >
        <p>{t('queue.freezeText')}</p>
        <Field
          label={t('queue.holdReason')}
          help={t('queue.reasonHelp')}
          value={reason}
          onChange={setReason}
        />
      </FormDialog>
    </>
  );
}

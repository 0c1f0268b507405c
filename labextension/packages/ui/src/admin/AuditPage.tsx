/** Who did what, when, and how it ended. */
import type { Schemas } from '@backendai/api';
import { Ban, CircleAlert, CircleCheck, FileDown, ScrollText } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAddress } from '../address';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { Button } from '../kit/Button';
import { FormDialog } from '../kit/FormDialog';
import { NounList, type ListOf } from '../lists';
import { ask } from '../nouns/client';
import { PageHeading } from '../PageHeading';
import { exactly } from '../times';
import { FromService } from '../FromService';
import { useWording } from '../wording';

type Entry = Schemas['AuditEntry'];

const RESULTS = {
  success: { tone: 'success', Icon: CircleCheck },
  refused: { tone: 'warning', Icon: Ban },
  failed: { tone: 'error', Icon: CircleAlert }
} as const;

const KINDS = [
  'user',
  'account',
  'keypair',
  'project',
  'domain',
  'session',
  'folder',
  'image',
  'registry',
  'preset',
  'resource-group',
  'reservation',
  'node',
  'keypair-policy',
  'user-policy',
  'project-policy',
  'login'
];

export default function AuditPage(): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const [shown, setShown] = useState<Entry | null>(null);
  const [address] = useAddress();
  const moments = (filters: Record<string, string>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(filters).map(([key, value]) => [
        key,
        ['since', 'until'].includes(key) && !Number.isNaN(Date.parse(value))
          ? new Date(value).toISOString()
          : value
      ])
    );
  const list: ListOf<Entry> = {
    name: 'audit',
    caption: t('audit.title'),
    order: '',
    searches: t('audit.search'),
    filters: [
      { key: 'actor', title: t('audit.actor') },
      { key: 'action', title: t('audit.action') },
      {
        key: 'object_kind',
        title: t('audit.kind'),
        options: KINDS.map(value => ({ value, text: kindWord(value) }))
      },
      { key: 'object', title: t('audit.object') },
      {
        key: 'result',
        title: t('audit.result'),
        options: Object.keys(RESULTS).map(value => ({
          value,
          text: t(`audit.results.${value}`)
        }))
      },
      { key: 'since', title: t('audit.since') },
      { key: 'until', title: t('audit.until') }
    ],
    load: async (view, signal) => {
      const query = {
        limit: view.limit,
        ...moments(view.filters),
        ...(view.search ? { search: view.search } : {}),
        ...(view.after ? { after: view.after } : {})
      };
      const page = await ask<Schemas['AuditPage']>(host, 'GET', '/api/audit', {
        params: { query },
        signal
      });
      return { items: page.items, next: page.next ?? null };
    },
    rowKey: entry => String(entry.seq),
    rowName: entry => `${entry.action} ${entry.object_name}`,
    columns: [
      {
        key: 'at',
        title: t('audit.at'),
        cell: entry => <time dateTime={entry.at}>{exactly(entry.at, language)}</time>,
        csv: entry => entry.at
      },
      {
        key: 'action',
        title: t('audit.action'),
        head: true,
        cell: entry => (
          <button type="button" className="bai-link" onClick={() => setShown(entry)}>
            {entry.action}
          </button>
        ),
        csv: entry => entry.action
      },
      {
        key: 'object',
        title: t('audit.object'),
        cell: entry => (
          <span className="bai-status">
            {entry.object_name || '–'}
            <span className="bai-reason">{kindWord(entry.object_kind)}</span>
          </span>
        ),
        csv: entry => entry.object_name
      },
      {
        key: 'actor',
        title: t('audit.actor'),
        cell: entry =>
          entry.acted_as
            ? t('audit.actedAs', { actor: entry.actor, other: entry.acted_as })
            : entry.actor || '–',
        csv: entry => entry.actor
      },
      {
        key: 'result',
        title: t('audit.result'),
        cell: entry => <Result entry={entry} />,
        csv: entry => entry.result
      },
      {
        key: 'address',
        title: t('audit.address'),
        hidden: true,
        cell: entry => entry.address || '–',
        csv: entry => entry.address
      },
      {
        key: 'domain',
        title: t('fields.any.domain'),
        hidden: true,
        cell: entry => entry.domain ?? '–',
        csv: entry => entry.domain ?? ''
      },
      {
        key: 'message',
        title: t('audit.message'),
        hidden: true,
        cell: entry => (entry.message ? <FromService text={entry.message} /> : '–'),
        csv: entry => entry.message
      }
    ],
    empty: {
      icon: <ScrollText size={32} />,
      title: t('audit.emptyTitle'),
      text: t('audit.emptyText')
    }
  };
  const filters = Object.fromEntries(
    ['search', ...list.filters.map(filter => filter.key)].flatMap(key => {
      const value = address.get(key);
      return value ? [[key, value]] : [];
    })
  );
  const query = new URLSearchParams({ format: 'csv', ...moments(filters) }).toString();
  return (
    <>
      <PageHeading title={t('audit.title')}>
        <Button
          icon={<FileDown size={16} aria-hidden />}
          href={host.addressOf(`/api/audit/export?${query}`)}
          title={t('audit.exportHint')}
        >
          {t('audit.export')}
        </Button>
      </PageHeading>
      <p className="bai-lead">{t('audit.about')}</p>
      <NounList list={list} />
      {shown ? <EntryDialog entry={shown} onClose={() => setShown(null)} /> : null}
    </>
  );

  function kindWord(kind: string): string {
    return t(`audit.kinds.${kind}`, { defaultValue: kind });
  }
}

function Result({ entry }: { entry: Entry }): JSX.Element {
  const { t } = useTranslation();
  const { tone, Icon } = RESULTS[entry.result as keyof typeof RESULTS] ?? RESULTS.failed;
  return (
    <Badge tone={tone} icon={<Icon size={14} />}>
      {t(`audit.results.${entry.result}`, { defaultValue: entry.result })}
    </Badge>
  );
}

function EntryDialog({ entry, onClose }: { entry: Entry; onClose(): void }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const say = useWording();
  const facts: [string, string][] = [
    [t('audit.at'), exactly(entry.at, language)],
    [t('audit.actor'), entry.actor],
    [t('audit.actingAs'), entry.acted_as],
    [t('audit.credential'), entry.credential],
    [t('audit.address'), entry.address],
    [t('audit.object'), `${entry.object_kind} ${entry.object_name}`],
    [t('fields.any.domain'), entry.domain ?? ''],
    [t('audit.code'), entry.code],
    [t('audit.message'), say(entry.message)],
    [t('audit.request'), entry.request_id],
    [t('audit.hash'), entry.hash]
  ];
  const changed = [
    ...new Set([...Object.keys(entry.before ?? {}), ...Object.keys(entry.after ?? {})])
  ];
  return (
    <FormDialog
      open
      size="large"
      title={`${entry.seq} · ${entry.action}`}
      submit={t('app.close')}
      cancel={t('form.cancel')}
      onSubmit={onClose}
      onClose={onClose}
    >
      <Result entry={entry} />
      <dl className="bai-facts bai-facts-compact">
        {facts
          .filter(([, value]) => value)
          .map(([title, value]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {changed.length ? (
        <div className="bai-conflict">
          <table>
            <caption>{t('audit.changes')}</caption>
            <thead>
              <tr>
                <th scope="col">{t('conflict.field')}</th>
                <th scope="col">{t('audit.before')}</th>
                <th scope="col">{t('audit.after')}</th>
              </tr>
            </thead>
            <tbody>
              {changed.map(key => (
                <tr key={key}>
                  <th scope="row">
                    <code>{key}</code>
                  </th>
                  <td>{asText(entry.before?.[key])}</td>
                  <td>{asText(entry.after?.[key])}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </FormDialog>
  );
}

const asText = (value: unknown): string =>
  value === undefined || value === null
    ? '–'
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value as string | number);

/** How much everybody may hold on storage hosts, and how much of it they do. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { HardDrive, Pencil } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { number, parseAmount, showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { FormDialog } from '../../kit/FormDialog';
import { Meter } from '../../kit/Meter';
import { NounList, type ListOf } from '../../lists';
import { ask } from '../../nouns/client';
import { readDraft, type Draft, type Kind } from '../../nouns/kinds';
import { isSuperadmin } from '../../nouns/roles';
import { SpecialField } from '../../nouns/SpecialField';
import { useAct } from '../../nouns/useAct';
import { Reference } from '../../nouns/Value';
import { meQuery } from '../../queries';

type Scope = Schemas['QuotaScope'];

interface Props {
  hosts: readonly string[];
  /** Show what is on this one alone. */
  only?: string;
}

export function Quotas({ hosts, only }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { language } = host;
  const me = useQuery(meQuery(host)).data;
  const [edited, setEdited] = useState<Scope | null>(null);
  const limitOf = (scope: Scope): string =>
    scope.limit_bytes === null ? '∞' : showAmount('mem', scope.limit_bytes, language);
  const writes = me !== undefined && isSuperadmin(me);
  const list: ListOf<Scope> = {
    name: 'quota-scopes',
    caption: t('storage.quotas'),
    order: '',
    filters: [
      ...(only === undefined
        ? [
            {
              key: 'host',
              title: t('storage.host'),
              options: hosts.map(value => ({ value, text: value }))
            }
          ]
        : []),
      {
        key: 'kind',
        title: t('storage.kind'),
        options: ['user', 'project'].map(value => ({ value, text: t(`audit.kinds.${value}`) }))
      }
    ],
    load: async (view, signal) => {
      const query = {
        limit: view.limit,
        ...view.filters,
        ...(only === undefined ? {} : { host: only }),
        ...(view.after ? { after: view.after } : {})
      };
      const page = await ask<Schemas['QuotaScopePage']>(host, 'GET', '/api/quota-scopes', {
        params: { query },
        signal
      });
      return { items: page.items, next: page.next ?? null };
    },
    rowKey: scope => `${scope.host} ${scope.scope}`,
    rowName: scope => scope.owner,
    columns: [
      {
        key: 'owner',
        title: t('storage.owner'),
        head: true,
        cell: scope => (
          <Reference
            noun={scope.kind === 'project' ? 'projects' : 'users'}
            name={scope.owner}
          />
        ),
        csv: scope => scope.owner
      },
      {
        key: 'kind',
        title: t('storage.kind'),
        cell: scope => t(`audit.kinds.${scope.kind}`, { defaultValue: scope.kind }),
        csv: scope => scope.kind
      },
      {
        key: 'host',
        title: t('storage.host'),
        hidden: only !== undefined,
        cell: scope => scope.host,
        csv: scope => scope.host
      },
      {
        key: 'used',
        title: t('storage.used'),
        cell: scope => (
          <span className="bai-only-meter">
            <Meter
              label={t('storage.used')}
              text={t('storage.usedOf', {
                used: showAmount('mem', scope.used_bytes, language),
                total: limitOf(scope)
              })}
              value={scope.used_bytes}
              max={scope.limit_bytes ?? 0}
            />
          </span>
        ),
        csv: scope => String(scope.used_bytes)
      },
      {
        key: 'says',
        title: t('storage.says'),
        cell: scope => (
          <span className="bai-status">
            {t(`storage.from.${scope.limit_from}`, { defaultValue: scope.limit_from || '–' })}
            <span className="bai-reason">
              {t(scope.enforced ? 'storage.enforced' : 'storage.counted')}
            </span>
          </span>
        ),
        csv: scope => scope.limit_from
      },
      {
        key: 'folders',
        title: t('storage.folders'),
        align: 'end',
        cell: scope => number(scope.folders, language, 0),
        csv: scope => String(scope.folders)
      },
      {
        key: 'files',
        title: t('storage.files'),
        align: 'end',
        hidden: true,
        cell: scope => number(scope.used_files, language, 0),
        csv: scope => String(scope.used_files)
      }
    ],
    ...(writes
      ? {
          actions: (scope: Scope) => (
            <Button
              size="small"
              kind="quiet"
              icon={<Pencil size={14} aria-hidden />}
              aria-label={t('storage.limitOf', { name: scope.owner })}
              onClick={() => setEdited(scope)}
            >
              {t('form.edit')}
            </Button>
          )
        }
      : {}),
    empty: {
      icon: <HardDrive size={32} />,
      title: t('storage.noScopesTitle'),
      text: t('storage.noScopesText')
    }
  };
  return (
    <>
      <NounList list={list} />
      {edited ? <QuotaDialog scope={edited} onClose={() => setEdited(null)} /> : null}
    </>
  );
}

const BY_POLICY = { value: null, text: 'byPolicy' };
const BYTES: Kind = { type: 'size', specials: [BY_POLICY, { value: '-1', text: 'unlimited' }] };
const FILES: Kind = {
  type: 'number',
  least: 0,
  most: Number.MAX_SAFE_INTEGER,
  specials: [BY_POLICY, { value: -1, text: 'unlimited' }]
};

function QuotaDialog({ scope, onClose }: { scope: Scope; onClose(): void }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const act = useAct(['list', 'quota-scopes']);
  const own = scope.limit_from === 'scope';
  const [bytes, setBytes] = useState<Draft>(
    own && scope.limit_bytes !== null ? String(scope.limit_bytes) : '~byPolicy'
  );
  const [files, setFiles] = useState<Draft>(
    scope.limit_files === null ? '~byPolicy' : String(scope.limit_files)
  );
  const [size, count] = [readDraft(BYTES, bytes), readDraft(FILES, files)];
  const path = `/api/quota-scopes/${encodeURIComponent(scope.host)}/${encodeURIComponent(scope.scope)}`;
  const put = (body: object): Promise<unknown> => ask(host, 'PATCH', path, { body });
  const save = async (): Promise<void> => {
    const body = {
      limit_bytes: 'value' in size ? size.value : null,
      limit_files: 'value' in count ? count.value : null
    };
    const back = {
      limit_bytes: own ? scope.limit_bytes : null,
      limit_files: scope.limit_files
    };
    const ok = await act.send(
      () => put(body),
      t('form.saved', { name: scope.owner }),
      () => void act.run(() => put(back))
    );
    if (ok) {
      onClose();
    }
  };
  const wrong = size.wrong ?? count.wrong;
  const less =
    'value' in size &&
    typeof size.value === 'string' &&
    (parseAmount('mem', size.value) ?? Infinity) < scope.used_bytes;
  return (
    <FormDialog
      open
      title={t('storage.limitOf', { name: scope.owner })}
      submit={t('form.save')}
      cancel={t('form.cancel')}
      busy={act.busy}
      error={act.refused}
      blocked={wrong ? t('form.correctFirst') : undefined}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <p className="bai-help">
        {t('storage.limitText', {
          host: scope.host,
          used: showAmount('mem', scope.used_bytes, host.language)
        })}
      </p>
      <SpecialField
        kind={BYTES}
        label={t('storage.bytes')}
        draft={bytes}
        help={less ? t('storage.less') : undefined}
        error={size.wrong ? t(`wrong.${size.wrong}`) : undefined}
        onChange={setBytes}
      />
      <SpecialField
        kind={FILES}
        label={t('storage.fileCount')}
        draft={files}
        error={count.wrong ? t(`wrong.${count.wrong}`, { ...count.values }) : undefined}
        onChange={setFiles}
      />
    </FormDialog>
  );
}

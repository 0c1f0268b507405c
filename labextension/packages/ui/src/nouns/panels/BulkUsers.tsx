/** Many people at once: numbered ones, or those of a table. */
import type { Schemas } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { Download, UsersRound } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { DataTable } from '../../kit/DataTable';
import { Field } from '../../kit/Field';
import { FormDialog } from '../../kit/FormDialog';
import { Segmented } from '../../kit/Segmented';
import { SelectField } from '../../kit/SelectField';
import { TextArea } from '../../kit/TextArea';
import { line, saveAs } from '../../lists';
import { meQuery } from '../../queries';
import { ask } from '../client';
import { PickText } from '../PickText';
import { ReferenceField } from '../ReferenceField';
import { isSuperadmin, standsBelow } from '../roles';
import { useRefresh } from '../useVerbs';
import { valueWord } from '../words';
import { FromService } from '../../FromService';
import { useFailure } from '../../wording';

type Results = Schemas['AccountResults'];
type Way = 'series' | 'table';

const ROLES = ['user', 'domain-admin', 'monitor'];
const EXAMPLE =
  'name,full_name,email,domain,project,role\ngrace,Grace Hopper,grace@example.org,,,user';

export function BulkUsers(): JSX.Element {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={<UsersRound size={16} aria-hidden />} onClick={() => setOpen(true)}>
        {t('bulkUsers.open')}
      </Button>
      {open ? <BulkDialog onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function BulkDialog({ onClose }: { onClose(): void }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const refresh = useRefresh('users');
  const [way, setWay] = useState<Way>('series');
  const [series, setSeries] = useState<Series>({
    prefix: '',
    count: '10',
    suffix: '',
    domain: '',
    project: '',
    role: 'user'
  });
  const [csv, setCsv] = useState('');
  const [busy, setBusy] = useState(false);
  const say = useFailure();
  const [error, setError] = useState('');
  const [results, setResults] = useState<Results | null>(null);
  const send = async (): Promise<void> => {
    setBusy(true);
    setError('');
    try {
      setResults(
        way === 'series'
          ? await ask<Results>(host, 'POST', '/api/accounts/bulk', { body: bodyOf(series) })
          : await ask<Results>(host, 'POST', '/api/accounts/csv', { body: { csv } })
      );
      await refresh();
    } catch (reason) {
      setError(say(reason));
    } finally {
      setBusy(false);
    }
  };
  if (results) {
    return <ResultsDialog results={results} onClose={onClose} />;
  }
  const count = Number(series.count);
  const blocked =
    way === 'series'
      ? !series.prefix.trim() || !Number.isInteger(count) || count < 1
      : !csv.trim();
  return (
    <FormDialog
      open
      size="medium"
      title={t('bulkUsers.title')}
      submit={t('bulkUsers.create')}
      cancel={t('form.cancel')}
      busy={busy}
      error={error}
      blocked={blocked ? t('bulkUsers.blocked') : undefined}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      <Segmented
        label={t('bulkUsers.way')}
        value={way}
        options={[
          { value: 'series', text: t('bulkUsers.series') },
          { value: 'table', text: t('bulkUsers.table') }
        ]}
        onChange={chosen => setWay(chosen as Way)}
      />
      {way === 'series' ? (
        <SeriesFields series={series} onChange={setSeries} />
      ) : (
        <>
          <TextArea
            label={t('bulkUsers.csv')}
            help={t('bulkUsers.csvHelp')}
            value={csv}
            rows={8}
            code
            placeholder={EXAMPLE}
            onChange={setCsv}
          />
          <PickText accept=".csv,.txt" onText={setCsv} />
        </>
      )}
    </FormDialog>
  );
}

interface Series {
  prefix: string;
  count: string;
  suffix: string;
  domain: string;
  project: string;
  role: string;
}

function bodyOf({ prefix, count, suffix, domain, project, role }: Series) {
  return {
    prefix: prefix.trim(),
    count: Number(count),
    suffix: suffix.trim(),
    role,
    ...(domain ? { domain } : {}),
    ...(project ? { project } : {})
  };
}

function SeriesFields(props: { series: Series; onChange(series: Series): void }): JSX.Element {
  const { t } = useTranslation();
  const me = useQuery(meQuery(useHost())).data;
  const { series, onChange } = props;
  const set = (key: keyof Series) => (value: string) => onChange({ ...series, [key]: value });
  const count = Number(series.count) || 1;
  const names = `${series.prefix}${'1'.padStart(String(count).length, '0')}${series.suffix}`;
  return (
    <div className="bai-form-grid">
      <Field label={t('bulkUsers.prefix')} value={series.prefix} onChange={set('prefix')} />
      <Field
        label={t('bulkUsers.count')}
        value={series.count}
        decimal
        help={t('bulkUsers.names', { names, last: `${series.prefix}${count}${series.suffix}` })}
        onChange={set('count')}
      />
      <Field label={t('bulkUsers.suffix')} value={series.suffix} onChange={set('suffix')} />
      <SelectField
        label={t('fields.any.role')}
        value={series.role}
        options={ROLES.filter(value => me && standsBelow(value, me)).map(value => ({
          value,
          text: valueWord(t, 'role', value)
        }))}
        onChange={set('role')}
      />
      {me && isSuperadmin(me) ? (
        <ReferenceField
          noun="domains"
          label={t('fields.any.domain')}
          draft={series.domain}
          none={t('form.none')}
          onChange={domain => onChange({ ...series, domain, project: '' })}
        />
      ) : null}
      <ReferenceField
        noun="projects"
        label={t('fields.any.project')}
        draft={series.project}
        none={t('form.none')}
        {...(series.domain ? { domain: series.domain } : {})}
        onChange={set('project')}
      />
    </div>
  );
}

function ResultsDialog({
  results,
  onClose
}: {
  results: Results;
  onClose(): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { succeeded, failed, results: rows } = results;
  const save = (): void => {
    const lines = rows.map(row => line([row.name ?? '', row.password ?? '', row.error ?? '']));
    const head = line([t('fields.any.name'), t('secret.password'), t('bulkUsers.error')]);
    saveAs(new Blob(['\ufeff', head, ...lines], { type: 'text/csv' }), 'accounts.csv');
  };
  return (
    <FormDialog
      open
      size="large"
      title={t('bulkUsers.results', { succeeded, failed })}
      submit={t('secret.kept')}
      cancel={t('app.close')}
      onSubmit={onClose}
      onClose={onClose}
    >
      <p>{t('secret.passwordText')}</p>
      <Button icon={<Download size={16} aria-hidden />} onClick={save}>
        {t('bulkUsers.download')}
      </Button>
      <div className="bai-scroll">
        <DataTable
          caption={t('bulkUsers.results', { succeeded, failed })}
          rows={rows}
          rowKey={row => String(row.index)}
          columns={[
            {
              key: 'name',
              title: t('fields.any.name'),
              head: true,
              cell: row => row.name ?? `${row.line ?? row.index + 1}`
            },
            {
              key: 'password',
              title: t('secret.password'),
              cell: row =>
                row.password ? (
                  <code>{row.password}</code>
                ) : row.error ? (
                  <FromService text={row.error} />
                ) : (
                  '–'
                )
            }
          ]}
        />
      </div>
    </FormDialog>
  );
}

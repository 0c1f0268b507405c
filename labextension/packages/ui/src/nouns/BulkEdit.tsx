/** Several fields of many at once, and how it ended for each of them. */
import type { Me } from '@backendai/api';
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, CircleCheck } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../host';
import { Badge } from '../kit/Badge';
import { Checkbox } from '../kit/Checkbox';
import { DataTable } from '../kit/DataTable';
import { FormDialog } from '../kit/FormDialog';
import { meQuery } from '../queries';
import { changeMany, type BulkAnswer } from './client';
import { FieldControl } from './FieldControl';
import { blank, findWrong, openFields, toBody, toDrafts } from './form';
import { titleOf } from './NounDetail';
import type { AnyNoun, AnyRow, NounField } from './noun';
import { useRefresh } from './useVerbs';
import { useNounWords } from './words';
import { FromService } from '../FromService';
import { useFailure } from '../wording';

interface Asked {
  rows: AnyRow[];
  done(all: boolean): void;
}

export interface BulkEditing {
  /** Ask what to change of *rows*; tells whether it worked for all of them. */
  run(rows: AnyRow[]): Promise<boolean>;
  dialog: ReactNode;
}

/** The fields of *noun* that this person may change of many at once. */
export const fieldsTogether = (noun: AnyNoun, me: Me): NounField[] =>
  openFields(noun, me, true).filter(field => noun.together?.includes(field.name));

export function useBulkEdit(noun: AnyNoun): BulkEditing {
  const [asked, setAsked] = useState<Asked | null>(null);
  const me = useQuery(meQuery(useHost())).data;
  const close = (all: boolean): void => {
    asked?.done(all);
    setAsked(null);
  };
  return {
    run: rows => new Promise(done => setAsked({ rows, done })),
    dialog:
      asked && me ? (
        <EditDialog
          noun={noun}
          fields={fieldsTogether(noun, me)}
          rows={asked.rows}
          onClose={close}
        />
      ) : null
  };
}

interface Props {
  noun: AnyNoun;
  fields: NounField[];
  rows: AnyRow[];
  onClose(all: boolean): void;
}

function EditDialog({ noun, fields, rows, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const words = useNounWords(noun);
  const refresh = useRefresh(noun.name);
  const [drafts, setDrafts] = useState(() => toDrafts(fields, blank(fields)));
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [busy, setBusy] = useState(false);
  const say = useFailure();
  const [error, setError] = useState('');
  const [answer, setAnswer] = useState<BulkAnswer | null>(null);
  if (answer) {
    return <Outcome noun={noun} rows={rows} answer={answer} onClose={onClose} />;
  }
  const changed = fields.filter(field => chosen.includes(field.name));
  const wrong = findWrong(changed, drafts);
  const blocked = changed.length
    ? Object.keys(wrong).length
      ? t('form.correctFirst')
      : undefined
    : t('bulkEdit.nothing');
  const send = async (): Promise<void> => {
    setBusy(true);
    setError('');
    try {
      const body = (noun.finish ?? (each => each))(toBody(changed, drafts, null));
      const ids = rows.map(row => row.id);
      setAnswer(await changeMany(host, noun.name, ids, body));
      await refresh();
    } catch (reason) {
      setError(say(reason));
    } finally {
      setBusy(false);
    }
  };
  return (
    <FormDialog
      open
      size="medium"
      title={t('bulkEdit.title', { what: words.say('count', { count: rows.length }) })}
      submit={t('bulkEdit.apply')}
      cancel={t('form.cancel')}
      busy={busy}
      error={error}
      blocked={blocked}
      onSubmit={() => void send()}
      onClose={() => onClose(false)}
    >
      <p className="bai-help">{rows.map(row => titleOf(noun, row)).join(', ')}</p>
      {fields.map(field => {
        const found = wrong[field.name];
        const on = chosen.includes(field.name);
        return (
          <div key={field.name}>
            <Checkbox
              label={t('bulkEdit.change', { field: words.label(field.name) })}
              checked={on}
              onChange={next =>
                setChosen(old =>
                  next ? [...old, field.name] : old.filter(name => name !== field.name)
                )
              }
            />
            {on ? (
              <FieldControl
                field={field}
                drafts={drafts}
                words={words}
                error={found ? t(`wrong.${found.key}`, { ...found.values }) : undefined}
                onChange={draft => setDrafts(old => ({ ...old, [field.name]: draft }))}
              />
            ) : null}
          </div>
        );
      })}
    </FormDialog>
  );
}

function Outcome(props: {
  noun: AnyNoun;
  rows: AnyRow[];
  answer: BulkAnswer;
  onClose(all: boolean): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { noun, rows, answer, onClose } = props;
  const { succeeded, failed, results } = answer;
  const title = t('bulkEdit.results', { succeeded, failed });
  const close = (): void => onClose(failed === 0);
  const errorOf = (row: AnyRow): string | null | undefined =>
    results.find(result => rows[result.index] === row)?.error;
  return (
    <FormDialog
      open
      size="medium"
      title={title}
      submit={t('app.close')}
      onSubmit={close}
      onClose={close}
    >
      <div className="bai-scroll">
        <DataTable
          caption={title}
          rows={rows}
          rowKey={row => row.id}
          columns={[
            {
              key: 'name',
              title: t('fields.any.name'),
              head: true,
              cell: row => titleOf(noun, row)
            },
            {
              key: 'result',
              title: t('bulkEdit.result'),
              cell: row => {
                const error = errorOf(row);
                return error ? (
                  <span className="bai-status">
                    <Badge tone="error" icon={<CircleAlert size={14} />}>
                      {t('bulkEdit.failed')}
                    </Badge>
                    <FromService className="bai-reason" text={error} />
                  </span>
                ) : (
                  <Badge tone="success" icon={<CircleCheck size={14} />}>
                    {t('bulkEdit.done')}
                  </Badge>
                );
              }
            }
          ]}
        />
      </div>
    </FormDialog>
  );
}

/** The dotfiles of a domain, project or keypair: all of them are saved at once. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { FilePlus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import {
  bytesOf,
  isPermission,
  TOTAL_BYTES,
  wrongPath,
  wrongTogether,
  type Dotfile
} from '../../dotfiles';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { Field } from '../../kit/Field';
import { Meter } from '../../kit/Meter';
import { Skeleton } from '../../kit/States';
import { TextArea } from '../../kit/TextArea';
import { useAskBeforeLeaving } from '../../useAskBeforeLeaving';
import { LoadError } from '../../LoadError';
import { ask } from '../client';
import { useAct } from '../useAct';
import { WhyButton } from '../WhyButton';

interface Props {
  /** `/api/keypairs/AKIA…` */
  of: string;
  writes: boolean;
}

export function DotfilesEditor({ of, writes }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const { data, error, refetch } = useQuery({
    queryKey: ['dotfiles', of],
    queryFn: ({ signal }) => ask<Dotfile[]>(host, 'GET', `${of}/dotfiles`, { signal }),
    enabled: host.visible
  });
  if (error) {
    return <LoadError error={error} stale={false} onRetry={() => void refetch()} />;
  }
  return data ? (
    <Editor key={JSON.stringify(data)} of={of} writes={writes} saved={data} />
  ) : (
    <Skeleton rows={2} label={t('state.loading')} />
  );
}

function Editor({ of, writes, saved }: Props & { saved: Dotfile[] }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const client = useQueryClient();
  const act = useAct();
  const [files, setFiles] = useState(saved);
  const [open, setOpen] = useState<number | null>(null);
  const dirty = JSON.stringify(files) !== JSON.stringify(saved);
  const leaving = useAskBeforeLeaving(dirty, () => setFiles(saved));
  const together = wrongTogether(files);
  const broken =
    together !== null ||
    files.some(file => wrongPath(file.path) !== null || !isPermission(file.permission));
  const used = files.reduce((sum, file) => sum + bytesOf(file.content), 0);
  const change = (index: number, next: Partial<Dotfile>): void =>
    setFiles(files.map((file, at) => (at === index ? { ...file, ...next } : file)));
  const save = (): Promise<boolean> =>
    act.run(async () => {
      const answer = await ask<Dotfile[]>(host, 'PUT', `${of}/dotfiles`, { body: { files } });
      client.setQueryData(['dotfiles', of], answer);
    }, t('dotfiles.saved'));
  return (
    <div className="bai-dotfiles">
      {files.length === 0 ? <p className="bai-help">{t('dotfiles.none')}</p> : null}
      {files.map((file, index) => (
        <details
          key={index}
          className="bai-dotfile"
          open={open === index}
          onToggle={event => {
            if (event.currentTarget.open) {
              setOpen(index);
            }
          }}
        >
          <summary>
            <code>{file.path || t('dotfiles.unnamed')}</code>
            <span className="bai-help-inline">
              {file.permission} · {showAmount('mem', bytesOf(file.content), host.language)}
            </span>
          </summary>
          <DotfileFields
            file={file}
            writes={writes}
            onChange={next => change(index, next)}
            onRemove={() => setFiles(files.filter((_, at) => at !== index))}
          />
        </details>
      ))}
      <Meter
        label={t('dotfiles.together')}
        text={t('dotfiles.of', {
          used: showAmount('mem', used, host.language),
          most: showAmount('mem', TOTAL_BYTES, host.language)
        })}
        value={used}
        max={TOTAL_BYTES}
      />
      {together ? <p className="bai-field-error">{t(`dotfiles.wrong.${together}`)}</p> : null}
      {writes ? (
        <div className="bai-panel-actions">
          <Button
            icon={<FilePlus size={16} aria-hidden />}
            onClick={() => {
              setFiles([...files, { path: '', permission: '644', content: '' }]);
              setOpen(files.length);
            }}
          >
            {t('dotfiles.add')}
          </Button>
          <WhyButton
            kind="primary"
            busy={act.busy}
            why={dirty ? (broken ? t('form.correctFirst') : undefined) : t('form.noChanges')}
            onClick={() => void save()}
          >
            {t('form.save')}
          </WhyButton>
          {dirty ? (
            <Button kind="quiet" onClick={() => setFiles(saved)}>
              {t('form.discard')}
            </Button>
          ) : null}
        </div>
      ) : null}
      {leaving.dialog}
    </div>
  );
}

function DotfileFields(props: {
  file: Dotfile;
  writes: boolean;
  onChange(next: Partial<Dotfile>): void;
  onRemove(): void;
}): JSX.Element {
  const { t } = useTranslation();
  const { file, writes, onChange, onRemove } = props;
  const wrong = wrongPath(file.path);
  return (
    <div className="bai-form-grid">
      <Field
        label={t('dotfiles.path')}
        value={file.path}
        readOnly={!writes}
        help={t('dotfiles.pathHelp')}
        error={
          wrong && (file.path || wrong !== 'empty') ? t(`dotfiles.wrong.${wrong}`) : undefined
        }
        onChange={path => onChange({ path })}
      />
      <Field
        label={t('dotfiles.permission')}
        value={file.permission}
        readOnly={!writes}
        help={t('dotfiles.permissionHelp')}
        error={isPermission(file.permission) ? undefined : t('dotfiles.wrong.permission')}
        onChange={permission => onChange({ permission })}
      />
      <div data-wide>
        <TextArea
          label={t('dotfiles.content')}
          value={file.content}
          rows={10}
          code
          readOnly={!writes}
          onChange={content => onChange({ content })}
        />
      </div>
      {writes ? (
        <Button kind="quiet" icon={<Trash2 size={16} aria-hidden />} onClick={onRemove}>
          {t('dotfiles.remove')}
        </Button>
      ) : null}
    </div>
  );
}

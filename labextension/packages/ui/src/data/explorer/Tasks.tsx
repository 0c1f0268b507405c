/** What takes a while: how far it is, how it ended, and a way to stop it. */
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, LoaderCircle, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { number, showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Button, IconButton } from '../../kit/Button';
import { Progress } from '../../kit/Progress';
import { usePolling } from '../../stream';
import { tasksQuery } from '../queries';
import type { FolderTask } from '../types';
import { FromService } from '../../FromService';

/** What failed is shown for so long, in milliseconds. */
const RECENT = 10 * 60_000;
/** Others come and go with the folder itself. */
const SHOWN = ['copy', 'extract', 'empty-trash', 'clone'];

interface Props {
  /** Of this folder; null for all that one sees. */
  folderId: string | null;
  onCancel(id: string): Promise<boolean>;
}

export function Tasks({ folderId, onCancel }: Props): JSX.Element | null {
  const { t } = useTranslation();
  const host = useHost();
  const polling = usePolling();
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  const { data } = useQuery(tasksQuery(host, folderId, polling));
  const tasks = (data?.items ?? []).filter(
    task => SHOWN.includes(task.kind) && isShown(task) && !dismissed.includes(task.id)
  );
  if (tasks.length === 0) {
    return null;
  }
  return (
    <ul className="bai-tasks" aria-label={t('files.tasks')}>
      {tasks.map(task => (
        <li key={task.id}>
          {task.state === 'failed' ? (
            <>
              <CircleAlert size={18} aria-hidden className="bai-tone-error-icon" />
              <span role="alert" className="bai-task-words">
                <strong>{t(`files.task.${task.kind}`)}</strong>{' '}
                <FromService text={task.error} />
              </span>
              <IconButton
                label={t('app.close')}
                onClick={() => setDismissed(old => [...old, task.id])}
              >
                <X size={16} aria-hidden />
              </IconButton>
            </>
          ) : (
            <>
              <LoaderCircle size={18} aria-hidden className="bai-spin" />
              <span className="bai-task-words">
                <Progress
                  label={t(`files.task.${task.kind}`)}
                  text={describe(task, host.language)}
                  value={task.done}
                  max={task.total}
                />
              </span>
              <Button size="small" onClick={() => void onCancel(task.id)}>
                {t('data.cancel')}
              </Button>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function isShown({ state, ended_at: ended }: FolderTask): boolean {
  const recent = ended !== null && Date.now() - Date.parse(ended) < RECENT;
  return state === 'pending' || state === 'running' || (state === 'failed' && recent);
}

function describe({ done, total, unit }: FolderTask, language: string): string {
  const show = (amount: number): string =>
    unit === 'bytes' ? showAmount('mem', amount, language) : number(amount, language, 0);
  return total === null ? (done > 0 ? show(done) : '') : `${show(done)} / ${show(total)}`;
}

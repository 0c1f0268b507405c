/** A small file of text, written where it is; nobody's changes are lost unseen. */
import { ApiError, unwrap } from '@backendai/api';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type KeyboardEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { FormDialog } from '../../kit/FormDialog';
import { Segmented } from '../../kit/Segmented';
import { Skeleton } from '../../kit/States';
import { useAskBeforeLeaving } from '../../useAskBeforeLeaving';
import { LoadError } from '../../LoadError';
import { describeFailure } from '../failures';
import { dataKeys } from '../keys';
import { keysOfFiles, refresh } from '../live';
import { textQuery } from '../queries';
import type { Folder, TextFile } from '../types';
import { useWording } from '../../wording';

/** As the service has it. */
export const MOST_EDITED = 2 ** 20;

interface Props {
  folder: Folder;
  path: string;
  onClose(): void;
}

export function TextEditor({ folder, path, onClose }: Props): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  // Read anew each time somebody begins: what was read before may be old.
  const [begun] = useState(() => `${Date.now()}`);
  const { data, error, refetch } = useQuery(textQuery(host, folder.id, path, begun));
  if (!data) {
    return error ? (
      <LoadError error={error} onRetry={() => void refetch()} />
    ) : (
      <Skeleton rows={4} label={t('state.loading')} />
    );
  }
  return <Editing folder={folder} path={path} read={data} onClose={onClose} />;
}

type Answer = 'mine' | 'theirs';

function Editing({ folder, path, read, onClose }: Props & { read: TextFile }): JSX.Element {
  const { t } = useTranslation();
  const say = useWording();
  const { api, notify } = useHost();
  const client = useQueryClient();
  // What the service has: what was read, or what somebody else has written since.
  const [base, setBase] = useState(read);
  const [text, setText] = useState(read.text);
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState(false);
  const params = { path: { folder_id: folder.id }, query: { path } };
  const leaving = useAskBeforeLeaving(text !== base.text, () => setText(base.text));

  async function attempt(deed: () => Promise<void>): Promise<void> {
    setBusy(true);
    try {
      await deed();
    } catch (reason) {
      if (reason instanceof ApiError && reason.status === 412) {
        setConflict(true);
      } else {
        notify('error', describeFailure(reason, t, say));
      }
    } finally {
      setBusy(false);
    }
  }

  const save = (ifTag: string | null): Promise<void> =>
    attempt(async () => {
      await unwrap(
        api.PUT('/api/folders/{folder_id}/text', {
          params,
          body: { text },
          headers: ifTag === null ? {} : { 'If-Match': `"${ifTag}"` }
        })
      );
      client.removeQueries({ queryKey: ['content', folder.id, path] });
      refresh(client, [...keysOfFiles(folder.id), dataKeys.entry(folder.id, path)]);
      notify('success', t('files.saved'));
      leaving.allow();
      onClose();
    });

  const takeTheirs = (): Promise<void> =>
    attempt(async () => {
      const theirs = await unwrap(api.GET('/api/folders/{folder_id}/text', { params }));
      setBase(theirs);
      setText(theirs.text);
    });

  const answer = (chosen: Answer): void => {
    setConflict(false);
    void (chosen === 'mine' ? save(null) : takeTheirs());
  };

  const press = (event: KeyboardEvent): void => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 's') {
      event.preventDefault();
      void save(base.tag);
    }
  };
  return (
    <div className="bai-editor">
      <textarea
        aria-label={t('files.content')}
        value={text}
        spellCheck={false}
        readOnly={busy}
        onChange={event => setText(event.target.value)}
        onKeyDown={press}
      />
      <div className="bai-editor-deeds">
        <Button size="small" onClick={() => leaving.then(onClose)} disabled={busy}>
          {t('data.cancel')}
        </Button>
        <Button size="small" kind="primary" busy={busy} onClick={() => void save(base.tag)}>
          {t('files.save')}
        </Button>
      </div>
      {conflict ? (
        <ConflictDialog onClose={() => setConflict(false)} onAnswer={answer} />
      ) : null}
      {leaving.dialog}
    </div>
  );
}

interface ConflictProps {
  onClose(): void;
  onAnswer(answer: Answer): void;
}

function ConflictDialog({ onClose, onAnswer }: ConflictProps): JSX.Element {
  const { t } = useTranslation();
  const [answer, setAnswer] = useState<Answer>('theirs');
  return (
    <FormDialog
      open
      title={t('files.conflict')}
      submit={t(`files.conflict_${answer}`)}
      cancel={t('files.conflict_later')}
      danger
      size="medium"
      onClose={onClose}
      onSubmit={() => onAnswer(answer)}
    >
      <p>{t('files.conflictText')}</p>
      <Segmented
        label={t('files.conflict')}
        value={answer}
        options={(['theirs', 'mine'] as const).map(value => ({
          value,
          text: t(`files.keep_${value}`)
        }))}
        onChange={chosen => setAnswer(chosen)}
      />
      <p className="bai-help">{t(`files.loses_${answer}`)}</p>
    </FormDialog>
  );
}

/** What is being uploaded: a row for each batch, with what it waits for. */
import {
  ChevronDown,
  ChevronUp,
  CircleAlert,
  CircleCheck,
  CirclePause,
  FileQuestion,
  Pause,
  Play,
  Upload,
  X
} from 'lucide-react';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { showAmount } from '../../amounts';
import { useHost } from '../../host';
import { Button, IconButton } from '../../kit/Button';
import { Progress } from '../../kit/Progress';
import { PageLink } from '../../PageLink';
import { explorerAt, join } from '../paths';
import type { BatchView } from './queue';
import { useUploads } from './useUploads';
import { useWording } from '../../wording';

/** So many names of files are told. */
const NAMED = 5;

export function UploadTray({ batches }: { batches: readonly BatchView[] }): JSX.Element {
  const { t } = useTranslation();
  const queue = useUploads();
  const [open, setOpen] = useState(true);
  const busy = batches.filter(batch => !batch.ended).length;
  const done = batches.filter(isDone);
  const settled = done.length === batches.length;
  // What is over gets out of the way; what is new, or asks something, is shown.
  useEffect(() => setOpen(!settled), [settled]);
  const stored = done.reduce((sum, batch) => sum + batch.stored, 0);
  const Chevron = open ? ChevronDown : ChevronUp;
  return (
    <section className="bai-root bai-tray" aria-label={t('uploads.title')}>
      <header>
        <Upload size={18} aria-hidden />
        <h2>
          <span role="status">
            {busy
              ? t('uploads.busy', { count: busy })
              : settled
                ? t('uploads.done', { count: stored })
                : t('uploads.title')}
          </span>
        </h2>
        {done.length ? (
          <Button
            size="small"
            kind="quiet"
            onClick={() => done.forEach(batch => queue.forget(batch.id))}
          >
            {t('uploads.clear')}
          </Button>
        ) : null}
        <IconButton
          label={t(open ? 'uploads.fold' : 'uploads.unfold')}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          <Chevron size={18} aria-hidden />
        </IconButton>
      </header>
      {open ? (
        <ul>
          {batches.map(batch => (
            <Row key={batch.id} batch={batch} />
          ))}
        </ul>
      ) : null}
    </section>
  );
}

function isDone({ ended, clashes, failures }: BatchView): boolean {
  return ended && clashes.length === 0 && failures.length === 0;
}

function Row({ batch }: { batch: BatchView }): JSX.Element {
  const { t } = useTranslation();
  const { language } = useHost();
  const say = useWording();
  const queue = useUploads();
  const { id, to, files, stored, paused, ended, clashes, failures } = batch;
  const place = join(to.folder, to.path);
  const done = isDone(batch);
  const amount = (bytes: number): string =>
    bytes ? showAmount('mem', bytes, language) : '0 B';
  const text = done
    ? t('uploads.done', { count: stored })
    : t('uploads.progress', {
        stored,
        count: files,
        sent: amount(batch.sent),
        bytes: amount(batch.bytes)
      });
  return (
    <li>
      <div className="bai-tray-row">
        <StateIcon batch={batch} />
        <span className="bai-tray-words">
          <PageLink to={explorerAt(to.folderId, to.path)}>
            <bdi>{place}</bdi>
          </PageLink>
          <span className="bai-help">{paused ? `${t('uploads.paused')} · ${text}` : text}</span>
        </span>
        {ended ? null : (
          <IconButton
            label={t(paused ? 'uploads.resume' : 'uploads.pause', { place })}
            onClick={() => (paused ? queue.resume(id) : queue.pause(id))}
          >
            {paused ? <Play size={16} aria-hidden /> : <Pause size={16} aria-hidden />}
          </IconButton>
        )}
        <IconButton
          label={t(ended ? 'uploads.dismiss' : 'uploads.cancel', { place })}
          onClick={() => queue.cancel(id)}
        >
          <X size={16} aria-hidden />
        </IconButton>
      </div>
      {ended ? null : (
        <Progress
          quiet
          label={t('uploads.into', { place })}
          text={text}
          value={batch.bytes ? batch.sent : stored}
          max={batch.bytes || files}
        />
      )}
      {clashes.length ? (
        <div className="bai-tray-question" role="alert">
          <p>{t('uploads.clash', { count: clashes.length })}</p>
          <Names names={clashes} />
          <div className="bai-side-deeds">
            {(['replace', 'rename', 'skip'] as const).map(answer => (
              <Button key={answer} size="small" onClick={() => queue.decide(id, answer)}>
                {t(`uploads.${answer}`)}
              </Button>
            ))}
          </div>
        </div>
      ) : null}
      {failures.length ? (
        <div className="bai-tray-question" role="alert">
          <p>{t('uploads.failed', { count: failures.length })}</p>
          <Names
            names={failures.map(
              each => `${each.path}: ${say(each.reason) || t('uploads.cutOff')}`
            )}
          />
          <div className="bai-side-deeds">
            <Button size="small" onClick={() => queue.retry(id)}>
              {t('uploads.retry')}
            </Button>
          </div>
        </div>
      ) : null}
    </li>
  );
}

function Names({ names }: { names: string[] }): JSX.Element {
  const { t } = useTranslation();
  return (
    <ul className="bai-tray-names">
      {names.slice(0, NAMED).map(name => (
        <li key={name}>
          <bdi>{name}</bdi>
        </li>
      ))}
      {names.length > NAMED ? (
        <li>{t('uploads.others', { count: names.length - NAMED })}</li>
      ) : null}
    </ul>
  );
}

function StateIcon({ batch }: { batch: BatchView }): JSX.Element {
  const [Icon, tone] = batch.failures.length
    ? [CircleAlert, 'error']
    : batch.clashes.length
      ? [FileQuestion, 'warning']
      : batch.ended
        ? [CircleCheck, 'success']
        : batch.paused
          ? [CirclePause, 'warning']
          : [Upload, 'progress'];
  return <Icon size={18} aria-hidden className={`bai-icon-${tone as string}`} />;
}

import { useInfiniteQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Button } from '../../kit/Button';
import { RelativeTime } from '../../kit/RelativeTime';
import { Skeleton } from '../../kit/States';
import { LoadError } from '../../LoadError';
import { activityQuery } from '../queries';
import type { AuditEntry, Folder } from '../types';
import { FromService } from '../../FromService';

/** What was done to a folder and in it, and by whom. */
export function Activity({ folder }: { folder: Folder }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const query = useInfiniteQuery(activityQuery(host, folder.id));
  const entries = query.data?.pages.flatMap(page => page.items);
  if (!entries) {
    return query.error ? (
      <LoadError error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <Skeleton rows={4} label={t('state.loading')} />
    );
  }
  return (
    <>
      {entries.length === 0 ? <p className="bai-nothing">{t('files.noActivity')}</p> : null}
      <ol className="bai-history">
        {entries.map(entry => (
          <li key={entry.seq} data-result={entry.result}>
            <span>
              <strong>{entry.actor}</strong> {describe(entry, t)}
              {subject(entry) ? (
                <>
                  {' '}
                  <bdi>{subject(entry)}</bdi>
                </>
              ) : null}
            </span>
            {entry.result === 'success' || !entry.message ? null : (
              <FromService className="bai-field-error" text={entry.message} />
            )}
            <RelativeTime iso={entry.at} language={host.language} />
          </li>
        ))}
      </ol>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {t('files.more')}
        </Button>
      ) : null}
    </>
  );
}

function describe({ action }: AuditEntry, t: (key: string) => string): string {
  const key = `files.act.${action.replace(':', '_').replaceAll('-', '_')}`;
  const words = t(key);
  return words === key ? action : words;
}

/** What it was done to, in the folder; who was given something. */
function subject({ after, before }: AuditEntry): string {
  for (const known of [after, before]) {
    for (const key of ['path', 'user', 'name', 'owner']) {
      const value = (known as Record<string, unknown> | null)?.[key];
      if (typeof value === 'string' && value) {
        return value;
      }
    }
  }
  return '';
}

/** What is done to files: asked of the service, told to who asked, shown at once. */
import { unwrap } from '@backendai/api';
import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { describeFailure } from '../failures';
import { dataKeys } from '../keys';
import { keysOfFiles, refresh } from '../live';
import { join, nameOf } from '../paths';
import type { Clash, FileOutcomes, Folder } from '../types';
import { useWording } from '../../wording';

export interface FileVerbs {
  /** Each of these tells whether it went well; what did not has been told already. */
  makeDirectory(path: string): Promise<boolean>;
  rename(path: string, target: string): Promise<boolean>;
  /** Returns those of `paths` that are still to be done, because one of them failed. */
  place(how: 'move' | 'copy', paths: string[], into: string, clash: Clash): Promise<string[]>;
  trash(paths: string[]): Promise<boolean>;
  restore(ids: string[]): Promise<boolean>;
  emptyTrash(ids: string[] | null): Promise<boolean>;
  extract(path: string, into: string): Promise<boolean>;
  cancelTask(id: string): Promise<boolean>;
}

export function useFileVerbs({ id }: Folder): FileVerbs {
  const { t } = useTranslation();
  const say = useWording();
  const { api, notify } = useHost();
  const client = useQueryClient();
  const params = { path: { folder_id: id } };

  /** Do something; tell if it failed; have everybody look again. */
  async function attempt<T>(call: () => Promise<T>): Promise<T | null> {
    try {
      return await call();
    } catch (reason) {
      notify('error', describeFailure(reason, t, say));
      return null;
    } finally {
      refresh(client, [...keysOfFiles(id), dataKeys.tasks]);
    }
  }

  /** Tell which of many failed; the number that went well. */
  function tellFailures({ results, succeeded, failed }: FileOutcomes): number {
    const first = results.find(one => one.error);
    if (first) {
      const name = nameOf(first.path);
      notify(
        'error',
        t('files.someFailed', { count: failed, name, reason: say(first.error ?? '') })
      );
    }
    return succeeded;
  }

  async function placeOne(
    how: 'move' | 'copy',
    path: string,
    into: string,
    conflict: Clash
  ): Promise<void> {
    const body = { path, target: join(into, nameOf(path)), conflict };
    if (how === 'move') {
      await unwrap(api.POST('/api/folders/{folder_id}/move', { params, body }));
    } else {
      await unwrap(api.POST('/api/folders/{folder_id}/copy', { params, body }));
    }
  }

  async function restore(ids: string[]): Promise<boolean> {
    const outcomes = await attempt(() =>
      unwrap(
        api.POST('/api/folders/{folder_id}/trashed/restore', {
          params,
          body: { ids, target: '', conflict: 'fail' }
        })
      )
    );
    if (outcomes && tellFailures(outcomes)) {
      notify('success', t('files.restored', { count: outcomes.succeeded }));
    }
    return outcomes?.failed === 0;
  }

  return {
    restore,
    makeDirectory: async path => {
      const body = { path, parents: false, exist_ok: false };
      const made = await attempt(() =>
        unwrap(api.POST('/api/folders/{folder_id}/directories', { params, body }))
      );
      return made !== null;
    },
    rename: async (path, target) => {
      const body = { path, target, conflict: 'fail' as const };
      const placed = await attempt(() =>
        unwrap(api.POST('/api/folders/{folder_id}/move', { params, body }))
      );
      return placed !== null;
    },
    place: async (how, paths, into, clash) => {
      let done = 0;
      await attempt(async () => {
        for (const path of paths) {
          await placeOne(how, path, into, clash);
          done += 1;
        }
      });
      if (done > 0) {
        const said = how === 'move' ? 'files.moved' : 'files.copying';
        notify(how === 'move' ? 'success' : 'info', t(said, { count: done }));
      }
      return paths.slice(done);
    },
    trash: async paths => {
      const outcomes = await attempt(() =>
        unwrap(api.POST('/api/folders/{folder_id}/entries/trash', { params, body: { paths } }))
      );
      if (outcomes && tellFailures(outcomes)) {
        const ids = outcomes.results.flatMap(one => one.id ?? []);
        notify('success', t('files.trashed', { count: outcomes.succeeded }), () => {
          void restore(ids);
        });
      }
      return outcomes?.failed === 0;
    },
    emptyTrash: async ids => {
      const begun = await attempt(() =>
        unwrap(api.POST('/api/folders/{folder_id}/trashed/empty', { params, body: { ids } }))
      );
      return begun !== null;
    },
    extract: async (path, into) => {
      const body = {
        path,
        target: into,
        conflict: 'rename' as const,
        most_members: 100_000,
        most_bytes: null,
        skip_links: true
      };
      const begun = await attempt(() =>
        unwrap(api.POST('/api/folders/{folder_id}/extract', { params, body }))
      );
      if (begun) {
        notify('info', t('files.unpacking', { name: nameOf(path) }));
      }
      return begun !== null;
    },
    cancelTask: async taskId => {
      const ended = await attempt(() =>
        unwrap(
          api.DELETE('/api/folder-tasks/{task_id}', { params: { path: { task_id: taskId } } })
        )
      );
      return ended !== null;
    }
  };
}

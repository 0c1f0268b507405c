/** What is done to folders as a whole: asked of the service, told to who asked. */
import { ApiError, unwrap, type Schemas } from '@backendai/api';
import { useQueryClient, type InfiniteData, type Query } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { guess } from '../../guess';
import { useHost } from '../../host';
import { listKey, type Page } from '../../lists/list';
import { describeFailure } from '../failures';
import { dataKeys } from '../keys';
import { refresh } from '../live';
import type { Folder, FolderOutcomes } from '../types';
import type { Shelf } from './load';
import { useWording } from '../../wording';

export type FolderRequest = Schemas['FolderRequest'];
export type FolderChange = Schemas['FolderChange'];
export type CloneRequest = Schemas['CloneRequest'];

/** Under which name pages of folders are cached. */
export const FOLDER_LIST = 'folders';

export interface FolderVerbs {
  /** These throw what was refused: a form shows it where it belongs. */
  create(request: FolderRequest): Promise<Folder>;
  change(id: string, change: FolderChange): Promise<Folder>;
  clone(id: string, request: CloneRequest): Promise<Folder>;
  transfer(id: string, to: { user: string | null; project: string | null }): Promise<Folder>;
  purge(folders: Folder[]): Promise<boolean>;
  /** These tell what was refused by themselves. */
  trash(folders: Folder[]): Promise<boolean>;
  restore(folders: Folder[]): Promise<boolean>;
  restoreAs(folder: Folder, name: string): Promise<Folder>;
  cancelTask(id: string): Promise<boolean>;
}

export function useFolderVerbs(): FolderVerbs {
  const { t } = useTranslation();
  const say = useWording();
  const { api, notify } = useHost();
  const client = useQueryClient();

  const lookAgain = (): void => {
    const { folders, quota, tasks } = dataKeys;
    refresh(client, [folders, listKey(FOLDER_LIST), quota, tasks, ['folder']]);
  };

  async function ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } finally {
      lookAgain();
    }
  }

  /** Show at once that these are not on a shelf any more, nor beside the notebook. */
  function clear(shelf: Shelf, folders: Folder[]): Promise<() => void> {
    const ids = new Set(folders.map(({ id }) => id));
    const without = <Some extends Page<Folder>>(page: Some): Some => ({
      ...page,
      items: page.items.filter(({ id }) => !ids.has(id))
    });
    const of = dataKeys.folders.length;
    const predicate = ({ queryKey }: Query): boolean =>
      queryKey[of] === shelf || (shelf === 'active' && queryKey[of] === 'panel');
    return guess<Page<Folder> | InfiniteData<Page<Folder>>>(
      client,
      { queryKey: dataKeys.folders, predicate },
      answer =>
        'pages' in answer ? { ...answer, pages: answer.pages.map(without) } : without(answer)
    );
  }

  /** Do something to many; tell what failed; return what went well. */
  async function each(
    folders: Folder[],
    call: () => Promise<FolderOutcomes>,
    leaves?: Shelf
  ): Promise<Folder[]> {
    const takeBack = leaves && (await clear(leaves, folders));
    try {
      const { results, failed } = await ask(call);
      const first = results.find(one => one.error);
      if (first) {
        takeBack?.();
        const name = folders.find(({ id }) => id === first.reference)?.name ?? '';
        notify(
          'error',
          t('data.someFailed', { count: failed, name, reason: say(first.error ?? '') })
        );
      }
      const well = new Set(results.filter(one => !one.error).map(one => one.reference));
      return folders.filter(({ id }) => well.has(id));
    } catch (reason) {
      takeBack?.();
      notify('error', describeFailure(reason, t, say));
      return [];
    }
  }

  const idsOf = (folders: Folder[]): string[] => folders.map(({ id }) => id);

  async function restore(folders: Folder[]): Promise<boolean> {
    const body = { folders: idsOf(folders) };
    const call = (): Promise<FolderOutcomes> =>
      unwrap(api.POST('/api/folders/restore', { body }));
    const well = await each(folders, call, 'trash');
    if (well.length) {
      notify('success', t('data.restored', { count: well.length }));
    }
    return well.length === folders.length;
  }

  return {
    restore,
    create: body => ask(() => unwrap(api.POST('/api/folders', { body }))),
    change: (id, body) =>
      ask(() =>
        unwrap(
          api.PATCH('/api/folders/{reference}', { params: { path: { reference: id } }, body })
        )
      ),
    clone: async (id, body) => {
      const params = { path: { reference: id } };
      const answer = await ask(() =>
        unwrap(api.POST('/api/folders/{reference}/clone', { params, body }))
      );
      return answer.folder;
    },
    transfer: (id, body) =>
      ask(() =>
        unwrap(
          api.POST('/api/folders/{reference}/transfer', {
            params: { path: { reference: id } },
            body
          })
        )
      ),
    restoreAs: ({ id }, name) =>
      ask(() =>
        unwrap(
          api.POST('/api/folders/{reference}/restore', {
            params: { path: { reference: id } },
            body: { name }
          })
        )
      ),
    trash: async folders => {
      const body = { folders: idsOf(folders) };
      const call = (): Promise<FolderOutcomes> =>
        unwrap(api.POST('/api/folders/trash', { body }));
      const well = await each(folders, call, 'active');
      if (well.length) {
        notify('success', t('data.trashed', { count: well.length }), () => void restore(well));
      }
      return well.length === folders.length;
    },
    purge: async folders => {
      const body = {
        folders: folders.map(({ id, name }) => ({ folder: id, name, force: false }))
      };
      const well = await each(folders, () => unwrap(api.POST('/api/folders/purge', { body })));
      if (well.length) {
        notify('info', t('data.purging', { count: well.length }));
      }
      return well.length === folders.length;
    },
    cancelTask: async id => {
      try {
        const params = { path: { task_id: id } };
        await ask(() => unwrap(api.DELETE('/api/folder-tasks/{task_id}', { params })));
        return true;
      } catch (reason) {
        notify('error', describeFailure(reason, t, say));
        return false;
      }
    }
  };
}

/** What of a refusal belongs to one field, and what to the whole form. */
export function splitRefusal(
  reason: unknown,
  fields: readonly string[],
  say: (text: string) => string
): Record<string, string> {
  if (!(reason instanceof ApiError)) {
    return { '': say(reason instanceof Error ? reason.message : String(reason)) };
  }
  const found: Record<string, string> = {};
  for (const { field, message } of reason.fields) {
    found[fields.includes(field) ? field : ''] = say(message);
  }
  if (Object.keys(found).length) {
    return found;
  }
  const said = say(reason.message);
  // The service begins what it says of a field with the field's name.
  const [, field = '', words = ''] = /^(\w+): (.*)$/s.exec(said) ?? [];
  return fields.includes(field) ? { [field]: words } : { '': said };
}

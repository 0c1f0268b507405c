/** Cache keys of answers about data; small, since the event stream writes by them. */

export const dataKeys = {
  folders: ['folders'] as const,
  folder: (id: string) => ['folder', id] as const,
  /** Everything about what is in a folder. */
  files: (id: string) => ['files', id] as const,
  entries: (id: string, view: object) => ['files', id, 'entries', view] as const,
  entry: (id: string, path: string) => ['files', id, 'entry', path] as const,
  content: (id: string, path: string, tag: string, kind: string) =>
    ['content', id, path, tag, kind] as const,
  trashed: (id: string) => ['files', id, 'trashed'] as const,
  guests: (id: string) => ['folder', id, 'guests'] as const,
  activity: (id: string) => ['folder', id, 'activity'] as const,
  tasks: ['folder-tasks'] as const,
  tasksOf: (id: string) => ['folder-tasks', id] as const,
  invitations: ['invitations'] as const,
  hosts: ['storage-hosts'] as const,
  quota: ['quota-scopes'] as const
};

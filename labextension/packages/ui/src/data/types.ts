/** What the service says about folders and files, under short names. */
import type { Schemas } from '@backendai/api';

export type Folder = Schemas['Folder'];
export type FolderTask = Schemas['FolderTask'];
export type FileEntry = Schemas['FileEntry'];
export type FilePage = Schemas['FilePage'];
export type FileOutcomes = Schemas['FileOutcomes'];
export type FolderOutcomes = Schemas['FolderOutcomes'];
export type FolderPermission = Schemas['FolderPermission'];
export type Guest = Schemas['Guest'];
export type Invitation = Schemas['Invitation'];
export type QuotaScope = Schemas['QuotaScope'];
export type StorageHost = Schemas['StorageHost'];
export type TextFile = Schemas['TextFile'];
export type TrashedFile = Schemas['TrashedFile'];
export type AuditEntry = Schemas['AuditEntry'];

/** What is done where something has that name already. */
export type Clash = 'fail' | 'replace' | 'rename';
export type Sorting = 'name' | 'kind' | 'size' | 'modified';

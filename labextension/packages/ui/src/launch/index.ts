export { FromService } from '../FromService';
export { LaunchForm } from './LaunchForm';
export type { LaunchFormHandle } from './LaunchForm';
export type { AskFirst } from './useDryRun';
export type { FindFolders } from './useFolders';
export type { GivenSpec, LaunchSpec } from './form';
export type { Supply } from './supply';

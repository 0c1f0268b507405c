/** Lists: declare a {@link ListOf}, show it with {@link NounList}. */
export { line, saveAs } from './csv';
export { listKey } from './list';
export type { BulkAction, Filter, ListColumn, ListOf, Page } from './list';
export { NounList } from './NounList';
export { keep, recall, useRemembered } from './remembered';
export type { ListView } from './view';

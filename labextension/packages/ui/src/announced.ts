/** What the stream announces by its kind alone, in terms of the cache. */
import { focusManager, type QueryClient, type QueryKey } from '@tanstack/react-query';
import { dataKeys } from './data/keys';
import { listKey } from './lists/list';
import { keys } from './queries';

/** A kind of nouns is called as they are: their list, one of them, and what names one. */
const keysOfNoun = (noun: string): QueryKey[] => [listKey(noun), ['noun', noun]];

const NOUNS = [
  'domains',
  'keypair-policies',
  'keypairs',
  'presets',
  'project-policies',
  'projects',
  'registries',
  'reservations',
  'resource-groups',
  'slot-types',
  'user-policies',
  'users'
];

/** What looks different when something of a kind has changed. */
const KEYS: Record<string, readonly QueryKey[]> = {
  attempts: [keys.attempts],
  queue: [keys.queue, listKey('queue'), keys.onNode],
  resources: [['resources'], listKey('agent-summaries'), listKey('agents')],
  nodes: keys.nodes,
  usage: [keys.agents, keys.usageOfOthers, keys.usageOf],
  images: [['installs'], ['rescan'], ...keysOfNoun('images')],
  hosts: [dataKeys.hosts],
  storage: [dataKeys.hosts],
  remains: [['storage-remains']],
  simulation: [['simulation']],
  ...Object.fromEntries(NOUNS.map(noun => [noun, keysOfNoun(noun)]))
};

/**
 * Have what is shown of these kinds asked for again, and the logs of these sessions.
 *
 * What is not shown, or in a window that nobody sees, is asked for when it is.
 */
export function applyAnnouncement(
  client: QueryClient,
  kinds: readonly string[],
  logs: readonly string[] = []
): void {
  const refetchType = focusManager.isFocused() ? 'active' : 'none';
  const told = [...kinds.flatMap(kind => KEYS[kind] ?? []), ...logs.map(keys.logs)];
  for (const queryKey of told) {
    void client.invalidateQueries({ queryKey, refetchType });
  }
}

/** After a break of the stream: anything may have changed. */
export const distrustAnnounced = (client: QueryClient): void =>
  applyAnnouncement(client, Object.keys(KEYS));

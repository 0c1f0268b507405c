// @vitest-environment happy-dom
import { QueryClient } from '@tanstack/react-query';
import { describe, expect, test } from 'vitest';
import { applyAnnouncement, distrustAnnounced } from './announced';
import { listKey } from './lists';
import { nounKeys } from './nouns/client';
import { NOUN_TABLE } from './nouns/table';

const nouns = await Promise.all(Object.values(NOUN_TABLE).map(load => load()));

describe.each(nouns.map(noun => noun.name))('the announcement of %s', name => {
  const shown = (): { client: QueryClient; stale(): boolean[] } => {
    const client = new QueryClient();
    const asked = [[...listKey(name), 'live', { search: '' }], nounKeys.one(name, 'id')];
    asked.forEach(key => client.setQueryData(key, 'told'));
    client.setQueryData(listKey('sessions'), 'of something else');
    const stale = (): boolean[] =>
      [...asked, listKey('sessions')].map(
        key => client.getQueryState(key)?.isInvalidated ?? false
      );
    return { client, stale };
  };

  test('has their lists and every one of them asked for again, and nothing else', () => {
    const { client, stale } = shown();
    applyAnnouncement(client, [name]);
    expect(stale()).toEqual([true, true, false]);
  });

  test('may have been missed while the stream was broken', () => {
    const { client, stale } = shown();
    distrustAnnounced(client);
    expect(stale()).toEqual([true, true, false]);
  });
});

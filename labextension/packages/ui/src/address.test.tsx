// @vitest-environment happy-dom
import { act, cleanup, render } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { useAddress, type SetAddress } from './address';
import { launchAddress, readWish } from './launch/address';
import { readView, writeView } from './lists/view';

afterEach(cleanup);

/** What nobody's names are, and everybody's words may be. */
const WORDS = ['50%', '100%25', 'a%3D1', '%2F', 'a&b=c', 'ä+ö', '%zz'];

function stand(at: string) {
  const [path = '', searchPath = ''] = at.split('?');
  const { hook, searchHook, history } = memoryLocation({ path, searchPath, record: true });
  const seen: { address?: URLSearchParams; set?: SetAddress } = {};
  function Reader(): null {
    [seen.address, seen.set] = useAddress();
    return null;
  }
  render(
    <Router hook={hook} searchHook={searchHook}>
      <Reader />
    </Router>
  );
  return { seen, history };
}

test.each(WORDS)('%j is what is looked for when the address is read', words => {
  const defaults = { order: 'name', limit: 20, filters: ['owner'] };
  const view = readView(new URLSearchParams(), defaults);
  const wanted = { ...view, search: words, filters: { owner: words } };
  const query = writeView(new URLSearchParams(), wanted, defaults).toString();

  const { seen } = stand(`/sessions?${query}`);

  expect(readView(seen.address ?? new URLSearchParams(), defaults)).toEqual(wanted);
});

test.each(WORDS)('%j is in the launch form that an address leads to', words => {
  const wish = { image: 'python', environ: { WORDS: words }, startup_command: words };

  const { seen } = stand(launchAddress(wish));

  expect(readWish(seen.address ?? new URLSearchParams())).toEqual(wish);
});

test('what stands in the path is not touched by another query', () => {
  const { seen, history } = stand('/things/50%25?tab=a%3D1');

  act(() => {
    seen.set?.(old => {
      old.set('more', '5%');
      return old;
    });
    seen.set?.(old => new URLSearchParams([...old, ['last', '1']]));
  });

  expect(history?.at(-1)).toBe('/things/50%25?tab=a%3D1&more=5%25&last=1');
  expect(seen.address?.get('more')).toBe('5%');
  act(() => seen.set?.({}));
  expect(history?.at(-1)).toBe('/things/50%25');
});

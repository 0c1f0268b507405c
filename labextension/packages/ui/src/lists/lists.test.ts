import { describe, expect, test } from 'vitest';
import { exportList, line } from './csv';
import type { ListColumn } from './list';
import { goOn, pageBefore, pageNumber } from './trail';
import { changed, isNarrowed, readView, widened, writeView } from './view';

const defaults = { order: '-created_at', limit: 20, filters: ['status', 'owner'] };

describe('the view of a list', () => {
  test('is what its address says', () => {
    const address = new URLSearchParams('search=train&status=RUNNING&order=name&tab=batch');

    expect(readView(address, defaults)).toEqual({
      search: 'train',
      filters: { status: 'RUNNING' },
      order: 'name',
      after: '',
      limit: 20
    });
  });

  test('writes only what differs from the usual, and leaves others in the address', () => {
    const address = new URLSearchParams('tab=batch&search=old&owner=mina');
    const view = readView(new URLSearchParams('status=ERROR'), defaults);

    expect(writeView(address, view, defaults).toString()).toBe('tab=batch&status=ERROR');
  });

  test('is back on the first page when other rows are asked for', () => {
    const view = { ...readView(new URLSearchParams('after=c2'), defaults) };

    expect(changed(view, { filters: { owner: 'mina' } }).after).toBe('');
    expect(changed(view, { order: 'name' }).after).toBe('');
    expect(changed(view, { after: 'c3' }).after).toBe('c3');
  });

  test('loses a filter that is set to nothing', () => {
    const view = readView(new URLSearchParams('owner=mina'), defaults);

    expect(isNarrowed(view, [{ key: 'owner' }])).toBe(true);
    expect(isNarrowed(changed(view, { filters: { owner: '' } }), [{ key: 'owner' }])).toBe(
      false
    );
  });

  test('keeps what its page has chosen when the filters are cleared', () => {
    const view = readView(new URLSearchParams('owner=mina&status=ERROR'), defaults);
    const filters = [{ key: 'owner' }, { key: 'status', outside: true }];

    expect(widened(view, filters).filters).toEqual({ status: 'ERROR' });
    expect(isNarrowed(widened(view, filters), filters)).toBe(false);
  });
});

describe('the trail of pages', () => {
  test('leads back the way one came', () => {
    const second = goOn([], '', 'c1');
    const third = goOn(second, 'c1', 'c2');

    expect(pageNumber(third, 'c2')).toBe(3);
    expect(pageBefore(third, 'c2')).toBe('c1');
    expect(pageBefore(third, 'c1')).toBe('');
  });

  test('begins anew from a page in the middle', () => {
    expect(goOn(['c1', 'c2', 'c3'], 'c1', 'other')).toEqual(['c1', 'other']);
  });

  test('leads to the first page from an address that somebody sent', () => {
    expect(pageNumber([], 'c7')).toBeNull();
    expect(pageBefore([], 'c7')).toBe('');
    expect(goOn([], 'c7', 'c8')).toEqual(['c7', 'c8']);
  });
});

describe('a file for spreadsheets', () => {
  test('quotes what would be read as another cell', () => {
    expect(line(['a,b', 'say "hi"', 'two\nlines'])).toBe('"a,b","say ""hi""","two\nlines"\r\n');
  });

  test('keeps names from being formulas, and numbers as they are', () => {
    expect(line(['=1+2', '@name', '+4', '-5.5', '-name'])).toBe(
      "'=1+2,'@name,'+4,-5.5,'-name\r\n"
    );
  });

  test('has every page and every column that can be written', async () => {
    const columns: ListColumn<string>[] = [
      { key: 'name', title: 'Name', cell: row => row, csv: row => row },
      { key: 'actions', title: 'Actions', cell: () => null }
    ];
    const pages: Record<string, { items: string[]; next: string | null }> = {
      '': { items: ['a', 'b'], next: 'c1' },
      c1: { items: ['c'], next: null }
    };
    const counts: number[] = [];
    const file = await exportList(
      {
        columns,
        load: view => Promise.resolve(pages[view.after] ?? { items: [], next: null })
      },
      readView(new URLSearchParams('after=c9'), defaults),
      new AbortController().signal,
      count => counts.push(count)
    );

    expect((await file.text()).replace('\ufeff', '')).toBe('Name\r\na\r\nb\r\nc\r\n');
    expect(counts).toEqual([2, 3]);
  });

  test('stops when it is told to', async () => {
    const stop = new AbortController();
    const endless = {
      columns: [],
      load: () => {
        stop.abort();
        return Promise.resolve({ items: [], next: 'more' });
      }
    };

    await expect(
      exportList(
        endless,
        readView(new URLSearchParams(), defaults),
        stop.signal,
        () => undefined
      )
    ).rejects.toThrow();
  });
});

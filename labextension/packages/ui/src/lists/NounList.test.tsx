// @vitest-environment happy-dom
import { ApiError } from '@backendai/api';
import { cleanup, configure, fireEvent, screen, waitFor, within } from '@testing-library/react';
import axe from 'axe-core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import type { ListOf } from './list';
import { NounList } from './NounList';
import type { ListView } from './view';

afterEach(cleanup);
beforeEach(() => localStorage.clear());
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

interface Thing {
  name: string;
  colour: string;
}

const THINGS: Thing[] = ['apple', 'beet', 'cherry', 'date', 'elder'].map((name, index) => ({
  name,
  colour: index % 2 ? 'green' : 'red'
}));

/** Things listed as the service lists them: narrowed, sorted, two at a time. */
function shelf(changes: Partial<ListOf<Thing>> = {}) {
  const views: ListView[] = [];
  const list: ListOf<Thing> = {
    name: 'things',
    caption: 'Things',
    searches: 'Search things',
    order: 'name',
    columns: [
      { key: 'name', title: 'Name', head: true, sort: 'name', cell: thing => thing.name },
      { key: 'colour', title: 'Colour', cell: thing => thing.colour },
      { key: 'size', title: 'Size', cell: () => 'big', hidden: true }
    ],
    filters: [
      { key: 'colour', title: 'Colour', options: [{ value: 'red', text: 'Red' }] },
      { key: 'owner', title: 'Owner' }
    ],
    load: view => {
      views.push(view);
      const found = THINGS.filter(
        thing =>
          thing.name.includes(view.search) &&
          (!view.filters.colour || thing.colour === view.filters.colour)
      );
      if (view.order === '-name') {
        found.reverse();
      }
      const start = Number(view.after || '0');
      const next = start + 2 < found.length ? String(start + 2) : null;
      return Promise.resolve({ items: found.slice(start, start + 2), next });
    },
    rowKey: thing => thing.name,
    rowName: thing => thing.name,
    empty: { icon: null, title: 'No things', text: 'Make one.' },
    ...changes
  };
  return { list, views };
}

const open = (list: ListOf<Thing>, address?: string) =>
  showPage(<NounList list={list} />, address ? { address } : {});

const names = (): string[] =>
  screen
    .getAllByRole('rowheader')
    .map(cell => cell.querySelector('.bai-cell')?.textContent ?? '');

describe('a list', () => {
  test('is narrowed, sorted and paged as its address says, and says so there', async () => {
    const { list } = shelf();
    const { address } = await open(list, '/things?colour=red&order=-name&tab=a');
    await waitFor(() => expect(names()).toEqual(['elder', 'cherry']));

    fireEvent.click(screen.getByRole('button', { name: 'Next' }));
    await waitFor(() => expect(names()).toEqual(['apple']));
    expect(address()).toBe('/things?tab=a&colour=red&order=-name&after=2');

    fireEvent.click(screen.getByRole('button', { name: 'Previous' }));
    await waitFor(() => expect(names()).toEqual(['elder', 'cherry']));
    expect(address()).toBe('/things?tab=a&colour=red&order=-name');
  });

  test('searches while one types, from its first page on', async () => {
    const { list, views } = shelf();
    const { address } = await open(list, '/things?after=2');
    await waitFor(() => expect(names()).toEqual(['cherry', 'date']));

    fireEvent.change(screen.getByRole('searchbox'), { target: { value: 'e' } });
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));

    expect(address()).toBe('/things?search=e');
    expect(views.at(-1)).toMatchObject({ search: 'e', after: '' });
  });

  test('tells nothing found from nothing there, and leads out of it', async () => {
    const { list } = shelf();
    await open(list, '/things?search=zzz');
    await screen.findByText('Nothing found');

    fireEvent.click(screen.getAllByRole('button', { name: 'Clear filters' })[0] as HTMLElement);
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));
    cleanup();

    await open(shelf({ load: () => Promise.resolve({ items: [], next: null }) }).list);
    await screen.findByText('No things');
  });

  test('keeps which columns somebody wants to see', async () => {
    await open(shelf().list);
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));
    expect(screen.queryByRole('columnheader', { name: 'Size' })).toBeNull();

    fireEvent.click(screen.getByRole('button', { name: 'Columns' }));
    fireEvent.click(await screen.findByRole('menuitemcheckbox', { name: 'Size' }));
    await screen.findByRole('columnheader', { name: 'Size', hidden: true });
    cleanup();

    await open(shelf().list);
    await screen.findByRole('columnheader', { name: 'Size' });
  });

  test('sorts by a column at a press on its title, and back at the next', async () => {
    const { address } = await open(shelf().list);
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));

    fireEvent.click(screen.getByRole('button', { name: 'Name' }));
    await waitFor(() => expect(names()).toEqual(['elder', 'date']));
    expect(address()).toBe('/?order=-name');
  });

  test('does something with all that is chosen, on every page', async () => {
    const run = vi.fn(() => Promise.resolve(true));
    const { list } = shelf({ bulk: [{ key: 'eat', text: 'Eat', run }] });
    await open(list);
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));

    fireEvent.click(screen.getByRole('checkbox', { name: 'Choose everything on this page' }));
    fireEvent.click(screen.getByRole('button', { name: 'Next' }));
    await waitFor(() => expect(names()).toEqual(['cherry', 'date']));
    fireEvent.click(screen.getByRole('checkbox', { name: 'Choose date' }));
    const bar = within(screen.getByRole('region', { name: 'With what is chosen' }));
    expect(bar.getByText('3 chosen')).toBeTruthy();
    fireEvent.click(bar.getByRole('button', { name: 'Eat' }));

    await waitFor(() => expect(screen.queryByText('3 chosen')).toBeNull());
    expect(run).toHaveBeenCalledWith([THINGS[0], THINGS[1], THINGS[3]]);
  });

  test('says why something cannot be done with what is chosen', async () => {
    const run = vi.fn();
    const bulk = [
      { key: 'eat', text: 'Eat', admits: () => false, why: 'None of them is ripe.', run }
    ];
    await open(shelf({ bulk }).list);
    fireEvent.click(await screen.findByRole('checkbox', { name: 'Choose apple' }));

    const button = screen.getByRole('button', { name: 'Eat' });
    fireEvent.click(button);

    expect(run).not.toHaveBeenCalled();
    const reason = document.getElementById(button.getAttribute('aria-describedby') ?? '');
    expect(reason?.textContent).toBe('None of them is ripe.');
  });

  test('shows older rows beside what went wrong when it looked again', async () => {
    const { list } = shelf();
    let broken = false;
    const load: typeof list.load = (view, signal) =>
      broken ? Promise.reject(new ApiError('lost', 400)) : list.load(view, signal);
    await open({ ...list, load });
    await waitFor(() => expect(names()).toEqual(['apple', 'beet']));

    broken = true;
    fireEvent.click(screen.getByRole('button', { name: /^Refresh/ }));
    await screen.findByText('What you see may be out of date.');
    expect(names()).toEqual(['apple', 'beet']);
  });

  test('can be used without eyes', async () => {
    await open(shelf({ bulk: [{ key: 'eat', text: 'Eat', run: () => true }] }).list);
    fireEvent.click(await screen.findByRole('checkbox', { name: 'Choose apple' }));

    const found = await axe.run(document.body, {
      rules: { region: { enabled: false }, 'page-has-heading-one': { enabled: false } }
    });
    expect(found.violations.map(({ id, nodes }) => [id, nodes.map(n => n.html)])).toEqual([]);
  });
});

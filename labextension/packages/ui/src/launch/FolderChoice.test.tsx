// @vitest-environment happy-dom
import type { DryRun, Folder } from '@backendai/api';
import {
  act,
  cleanup,
  configure,
  fireEvent,
  render,
  screen,
  waitFor,
  within
} from '@testing-library/react';
import axe from 'axe-core';
import { I18nextProvider } from 'react-i18next';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createTranslator } from '../i18n';
import { makeFolder, makeMount, makeResources } from '../testing';
import type { GivenSpec, LaunchSpec } from './form';
import { LaunchForm } from './LaunchForm';
import { TYPING, type FindFolders, type FolderSearch } from './useFolders';

afterEach(cleanup);
// Busy machines take longer; nothing here waits for as long as this otherwise.
vi.setConfig({ testTimeout: 30_000 });
configure({ asyncUtilTimeout: 10_000 });

const PAGE = 3;

/** Somebody's folders, found as the service finds them: by name, a page at a time. */
function shelf(...folders: Folder[]) {
  const asked: FolderSearch[] = [];
  const find: FindFolders = wanted => {
    asked.push(wanted);
    const { search = '', after, folders: named } = wanted;
    const found = folders.filter(({ id, name }) =>
      named ? named.includes(id) || named.includes(name) : name.includes(search)
    );
    const start = Number(after ?? '0');
    const next = start + PAGE < found.length && !named ? String(start + PAGE) : null;
    return Promise.resolve({ items: named ? found : found.slice(start, start + PAGE), next });
  };
  return { asked, find };
}

function answer(changes: Partial<DryRun> = {}): DryRun {
  return {
    refused: [],
    starts_now: true,
    nodes: [],
    slots: {},
    mounts: [],
    project: 'vision',
    resource_group: 'default',
    why: null,
    ...changes
  };
}

interface Given {
  find: FindFolders;
  ask?: (spec: LaunchSpec) => DryRun;
  given?: GivenSpec;
}

async function show({ find, ask, given = {} }: Given) {
  const specs: LaunchSpec[] = [];
  const remember = (spec: LaunchSpec): void => void specs.push(spec);
  const { container } = render(
    <I18nextProvider i18n={await createTranslator('en', ['launch'])}>
      <form>
        <LaunchForm
          supply={makeResources()}
          given={given}
          language="en"
          onChange={remember}
          find={find}
          ask={ask ? spec => Promise.resolve(ask(spec)) : undefined}
        />
      </form>
    </I18nextProvider>
  );
  return { container, mounts: () => specs.at(-1)?.mounts };
}

const tick = async (name: RegExp): Promise<void> =>
  void fireEvent.click(await screen.findByRole('checkbox', { name }));
const chosen = () => within(screen.getByRole('list', { name: 'Folders of this session' }));

describe('the folders of a session', () => {
  test('are told with whose they are, what may be done, and where they lie', async () => {
    const { find } = shelf(
      makeFolder('data', { access: 'wd' }),
      makeFolder('sets', { is_owner: false, user: 'jun', access: 'ro', host: 'nas' }),
      makeFolder('team', { ownership_type: 'project', project: 'vision', user: null })
    );
    await show({ find });

    expect(await screen.findByText('yours · read, write and delete · on local')).toBeTruthy();
    expect(screen.getByText('shared by jun · read only · on nas')).toBeTruthy();
    expect(screen.getByText('of the project vision · read and write · on local')).toBeTruthy();
    expect(screen.getByText('Folders found: 3')).toBeTruthy();
  });

  test('are chosen, put elsewhere, made read-only, and left out again', async () => {
    const { find } = shelf(makeFolder('data'));
    const { mounts } = await show({ find });
    await tick(/^data/);
    expect(mounts()).toEqual([{ folder: 'id-of-data' }]);
    expect(chosen().getByText('It will be at /home/work/data')).toBeTruthy();

    fireEvent.change(chosen().getByLabelText(/^Appears at/), { target: { value: 'in/x' } });
    expect(chosen().getByText('It will be at /home/work/in/x')).toBeTruthy();
    fireEvent.click(chosen().getByRole('switch', { name: 'Read only' }));
    expect(mounts()).toEqual([{ folder: 'id-of-data', target: 'in/x', permission: 'ro' }]);
    fireEvent.click(chosen().getByRole('switch', { name: 'Read only' }));
    expect(mounts()).toEqual([{ folder: 'id-of-data', target: 'in/x' }]);

    fireEvent.click(chosen().getByRole('button', { name: 'Leave out data' }));
    expect(mounts()).toEqual([]);
    expect(document.activeElement).toBe(screen.getByLabelText('Find a folder'));
  });

  test('offer no choice where they can only be read', async () => {
    const { find } = shelf(makeFolder('sets', { access: 'ro' }));
    await show({ find });
    await tick(/^sets/);

    expect(chosen().queryByRole('switch')).toBeNull();
    expect(chosen().getByText('You may only read in this folder.')).toBeTruthy();
  });

  test('are unticked as they were ticked', async () => {
    const { find } = shelf(makeFolder('data'), makeFolder('sets'));
    const { mounts } = await show({ find });
    await tick(/^data/);
    await tick(/^sets/);
    await tick(/^data/);

    expect(mounts()).toEqual([{ folder: 'id-of-sets' }]);
  });

  test('of another project are heard of, and not chosen', async () => {
    const other = { ownership_type: 'project', project: 'audio', user: null };
    const { find } = shelf(makeFolder('songs', other));
    const { mounts } = await show({ find });
    await tick(/^songs.*Only for sessions of the project audio/);

    expect(mounts()).toEqual([]);
    expect(screen.getByRole('checkbox').getAttribute('aria-disabled')).toBe('true');
  });
});

describe('finding folders', () => {
  const many = ['a1', 'a2', 'b1', 'b2', 'c1'].map(name => makeFolder(name));

  test('is the service’s work: by name, and a page at a time', async () => {
    const { asked, find } = shelf(...many);
    await show({ find });
    expect(await screen.findByText('The first 3 folders; there are more')).toBeTruthy();

    fireEvent.click(screen.getByRole('button', { name: 'Show more' }));
    expect(await screen.findByRole('checkbox', { name: /^c1/ })).toBeTruthy();
    const rows = screen.getAllByRole('checkbox');
    expect(rows).toHaveLength(5);
    expect(document.activeElement).toBe(rows[2]); // from there it goes on
    expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull();

    const field = screen.getByLabelText('Find a folder');
    fireEvent.change(field, { target: { value: 'b2' } });
    expect(await screen.findByText('Folders found: 1')).toBeTruthy();
    expect(asked.map(each => [each.search, each.after])).toEqual([
      ['', ''],
      ['', '3'],
      ['b2', '']
    ]);
  });

  test('waits until somebody has stopped typing', async () => {
    const { asked, find } = shelf(...many);
    await show({ find });
    await screen.findByText(/there are more/);
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const pass = (time: number) => act(() => vi.advanceTimersByTimeAsync(time));
    const field = screen.getByLabelText('Find a folder');

    fireEvent.change(field, { target: { value: 'b' } });
    await pass(TYPING - 1);
    fireEvent.change(field, { target: { value: 'b2' } });
    await pass(TYPING - 1);
    expect(asked.map(each => each.search)).toEqual(['']);
    await pass(1);
    expect(asked.map(each => each.search)).toEqual(['', 'b2']);
  });

  test('is not taken back by an answer that comes late', async () => {
    const { find } = shelf(...many);
    const late: (() => void)[] = [];
    await show({
      find: async (wanted, signal) => {
        if (!wanted.search) {
          await new Promise<void>(resolve => late.push(resolve));
        }
        return find(wanted, signal);
      }
    });
    fireEvent.change(screen.getByLabelText('Find a folder'), { target: { value: 'c' } });
    await screen.findByText('Folders found: 1');

    await act(async () => {
      late.forEach(answer => answer());
      await Promise.resolve();
    });
    expect(screen.getByText('Folders found: 1')).toBeTruthy();
  });

  test('says that there are none, or none of that name', async () => {
    const { find } = shelf();
    await show({ find });
    expect(await screen.findByText('You have no folders yet.')).toBeTruthy();

    fireEvent.change(screen.getByLabelText('Find a folder'), { target: { value: 'x' } });
    expect(await screen.findByText('No folder has “x” in its name.')).toBeTruthy();
  });

  test('is tried again after it has failed', async () => {
    const { find } = shelf(makeFolder('data'));
    let away = true;
    await show({
      find: (wanted, signal) => (away ? Promise.reject(new Error('503')) : find(wanted, signal))
    });
    expect((await screen.findByRole('alert')).textContent).toContain('could not be listed');

    away = false;
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('checkbox', { name: /^data/ })).toBeTruthy();
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('does not start the session', async () => {
    const { find } = shelf();
    await show({ find });

    const field = screen.getByLabelText('Find a folder');
    expect(document.getElementById(field.getAttribute('form') ?? '')).toBeNull();
    expect(field.hasAttribute('form')).toBe(true);
  });
});

describe('folders of the last time', () => {
  test('are chosen again, by whatever they were called', async () => {
    const { asked, find } = shelf(makeFolder('data'), makeFolder('sets'));
    const given = { mounts: ['data/2026:in:ro', { folder: 'id-of-sets' }, 'gone'] };
    const { mounts } = await show({ find, given });

    expect(await screen.findByText('data/2026')).toBeTruthy();
    await waitFor(() => expect(chosen().getByText('sets')).toBeTruthy());
    expect(chosen().getByText('gone')).toBeTruthy(); // the service says what it thinks of it
    expect(asked[1]?.folders).toEqual(['data', 'id-of-sets', 'gone']);
    expect(mounts()).toEqual([
      { folder: 'data', subpath: '2026', target: 'in', permission: 'ro' },
      { folder: 'id-of-sets' },
      { folder: 'gone' }
    ]);

    await tick(/^data/);
    expect(mounts()).toEqual([{ folder: 'id-of-sets' }, { folder: 'gone' }]);
  });
});

test('a part of a folder is typed, without losing the place where one types', async () => {
  const { find } = shelf(makeFolder('data'));
  const { mounts } = await show({ find, given: { mounts: ['data'] } });
  const part = await screen.findByLabelText(/Part of the folder/);

  part.focus();
  fireEvent.change(part, { target: { value: '2026' } });

  expect(mounts()).toEqual([{ folder: 'data', subpath: '2026' }]);
  expect(document.activeElement).toBe(screen.getByLabelText(/Part of the folder/));
  expect(document.activeElement).toBe(part);
});

describe('what the service says of them', () => {
  test('is told live: refusals, and what comes by itself', async () => {
    const { find } = shelf(makeFolder('data'));
    const cache = makeMount('.cache', { automatic: true });
    const clash = { code: 'invalid-request', text: 'mounts: the target is taken' };
    const ask = (spec: LaunchSpec): DryRun =>
      answer(spec.mounts.length ? { refused: [clash] } : { mounts: [cache, makeMount('x')] });
    await show({ find, ask });
    const always = () => within(screen.getByRole('list', { name: 'Always there:' }));

    expect(await screen.findByText('Always there:')).toBeTruthy();
    expect(
      always()
        .getAllByRole('listitem')
        .map(each => each.textContent)
    ).toEqual(['.cache /home/work/.cache · read and write']);

    await tick(/^data/);
    expect(await screen.findByText(clash.text)).toBeTruthy();
    await act(() => Promise.resolve());
    expect(always().getByText('.cache')).toBeTruthy(); // it is not forgotten meanwhile
  });

  test('breaks no rule for assistive technology', async () => {
    const { find } = shelf(makeFolder('data'), makeFolder('sets', { access: 'ro' }));
    await show({ find, given: { mounts: ['data:ro'] } });
    await screen.findByText('Folders found: 2');

    const rules = { 'color-contrast': { enabled: false } }; // nothing is drawn here
    const found = await axe.run(screen.getByRole('group', { name: 'Folders' }), { rules });
    expect(found.violations.map(each => each.id)).toEqual([]);
  });
});

// @vitest-environment happy-dom
import { act, cleanup, fireEvent, renderHook, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { useLaunchHistory } from '../launch/history';
import { showPage } from '../testing-page';
import { useColumns } from './columns';
import { useRemembered } from './remembered';

afterEach(() => {
  cleanup();
  localStorage.clear();
});

const KEY = 'bai.things';
const NONE: string[] = [];
const open = () => renderHook(() => useRemembered(KEY, NONE)).result;

test('what one tab adds is kept when another adds something as well', () => {
  const [one, other] = [open(), open()];
  act(() => one.current[1]([...one.current[0], 'first']));
  act(() => other.current[1]([...other.current[0], 'second']));

  expect(one.current[0]).toEqual(['first', 'second']);
  expect(open().current[0]).toEqual(['first', 'second']);
});

test('what another window has changed is shown here, and what it has removed is not', () => {
  const here = open();
  const hear = (newValue: string | null): void =>
    act(() => {
      window.dispatchEvent(new StorageEvent('storage', { key: KEY, newValue }));
      window.dispatchEvent(new StorageEvent('storage', { key: 'other', newValue: '["no"]' }));
    });
  hear('["theirs"]');
  expect(here.current[0]).toEqual(['theirs']);
  hear('what another version wrote');
  expect(here.current[0]).toEqual([]);
  hear('["again"]');
  hear(null);
  expect(here.current[0]).toEqual([]);
});

/** A form that keeps templates, and which there are. */
function Templates({ title }: { title: string }): JSX.Element {
  const { templates, save } = useLaunchHistory();
  return (
    <>
      <button onClick={() => save({ image: 'python' }, title)}>Keep {title}</button>
      <p role="status" aria-label={title}>
        {templates.map(each => each.title).join(', ')}
      </p>
    </>
  );
}

const whois = (name: string) => ({ answer: () => ({ name, roles: ['user'] }) });
const told = (title: string): string | null =>
  screen.getByRole('status', { name: title }).textContent;

/** Press it once it is known who presses. */
async function keepAs(title: string): Promise<void> {
  await waitFor(() => {
    fireEvent.click(screen.getByRole('button', { name: `Keep ${title}` }));
    expect(told(title)).toContain(title);
  });
}

test('no template is lost to a second form', async () => {
  const both = (
    <>
      <Templates title="mine" />
      <Templates title="also mine" />
    </>
  );
  await showPage(both, whois('mina'));
  await keepAs('mine');
  await keepAs('also mine');

  expect(told('mine')).toBe('also mine, mine');
  expect(told('also mine')).toBe('also mine, mine');
});

test('who shares a browser with others sees nothing of theirs', async () => {
  await showPage(<Templates title="secret" />, whois('mina'));
  await keepAs('secret');
  cleanup();

  await showPage(<Templates title="other" />, whois('jun'));
  await keepAs('other');
  expect(told('other')).toBe('other');
  cleanup();

  await showPage(<Templates title="again" />, whois('mina'));
  await waitFor(() => expect(told('again')).toBe('secret'));
});

test('templates of nobody known go to nobody, and are not left lying about', async () => {
  const old = [
    { id: '1', at: '', title: 'whose', wish: { environ: { TOKEN: 'x' } }, kept: true }
  ];
  localStorage.setItem('bai.launches', JSON.stringify(old));
  await showPage(<Templates title="mine" />, whois('mina'));
  await keepAs('mine');

  expect(told('mine')).toBe('mine');
  expect(JSON.stringify({ ...localStorage })).not.toContain('TOKEN');
});

function Columns(): JSX.Element {
  const columns = useColumns({
    name: 'things',
    columns: [{ key: 'size', title: 'Size', cell: () => 'big' }]
  });
  const isShown = columns.isShown('size');
  return <button onClick={() => columns.toggle('size')}>{isShown ? 'shown' : 'hidden'}</button>;
}

test('columns that the browser had are where each begins, and go their own way', async () => {
  localStorage.setItem('bai.columns.things', '{"size":false}');
  const shown = (): string | null => screen.getByRole('button').textContent;
  await showPage(<Columns />, whois('mina'));
  expect(shown()).toBe('hidden');
  await waitFor(() => {
    fireEvent.click(screen.getByRole('button'));
    expect(shown()).toBe('shown');
  });
  cleanup();

  const { client } = await showPage(<Columns />, whois('jun'));
  await waitFor(() => expect(client.getQueryData(['me'])).toBeTruthy());
  expect(shown()).toBe('hidden');
});

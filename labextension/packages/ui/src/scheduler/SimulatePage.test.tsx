// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { showPage, type Asked, type Shown } from '../testing-page';
import SimulatePage from './SimulatePage';

afterEach(cleanup);

const ROOT = { name: 'root', roles: ['superadmin'], domain: 'default', projects: [] };
const PROJECTS = ['arts', 'science'].map(domain => ({ id: domain, name: 'vision', domain }));

const show = (): Promise<Shown> =>
  showPage(<SimulatePage />, {
    areas: ['admin', 'nodes'],
    answer: ({ path }) => {
      switch (path) {
        case '/api/me':
          return ROOT;
        case '/api/projects':
          return { items: PROJECTS, next: null };
        case '/api/schedule/simulate':
          return Response.json({ detail: 'enough' }, { status: 422 });
        default:
          return { items: [], next: null };
      }
    }
  });

const choose = (file: File): void => {
  const input = screen.getByLabelText('Choose a file…', { selector: 'input' });
  fireEvent.change(input, { target: { files: [file] } });
};
const press = (name: string): void => {
  fireEvent.click(screen.getByRole('button', { name }));
};
const ask = (): void => {
  fireEvent.submit(document.querySelector('form') as HTMLFormElement);
};

const sent = (asked: readonly Asked[]): unknown[] =>
  asked.filter(each => each.method === 'POST').map(each => each.body);

test('a file that will not do is told, whether or not another is there', async () => {
  await show();
  const large = new File([new Uint8Array((3 << 20) + 1)], 'large.csv');

  choose(large);
  expect(screen.getByRole('alert').textContent).toContain('larger than 3 MiB');
  choose(new File(['{}'], 'trace.jsonl'));
  expect(await screen.findByText(/From the file .*trace\.jsonl/)).toBeDefined();
  expect(screen.queryByRole('alert')).toBeNull();
  choose(large);
  expect(screen.getByRole('alert').textContent).toContain('larger than 3 MiB');
  choose(new File([new Uint8Array([0xff, 0xfe])], 'picture.png'));

  await waitFor(() => expect(screen.getByRole('alert').textContent).toContain('no text'));
});

test('what is typed while a file is read stays', async () => {
  const { asked } = await show();
  const count = screen.getByLabelText('How many times');

  choose(new File(['{"kind":"node"}'], 'trace.jsonl'));
  fireEvent.change(count, { target: { value: '7' } });
  await screen.findByText(/From the file/);

  expect((count as HTMLInputElement).value).toBe('7');
  ask();
  await waitFor(() => expect(sent(asked)).toMatchObject([{ trace: '{"kind":"node"}' }]));
});

test('what is missing is told to who asks with it, where it is missing', async () => {
  const { asked } = await show();
  press('Add one');
  const name = await screen.findByLabelText('Name');
  expect(name.getAttribute('aria-invalid')).toBeNull();
  expect(screen.queryByText('This is needed')).toBeNull();

  ask();
  expect(screen.getByText('This is needed')).toBeDefined();
  expect(screen.getByText('Write an amount here, or as a maximum')).toBeDefined();
  await screen.findByRole('option', { name: 'science:vision' });
  fireEvent.change(name, { target: { value: 'science:vision' } });
  expect(screen.getByLabelText('Name').getAttribute('aria-invalid')).toBeNull();
  expect(sent(asked)).toEqual([]);

  press('Remove it');
  press('Add one');

  expect(screen.queryByText('This is needed')).toBeNull();
});

test('a project is named with its domain, others of that name are not meant', async () => {
  const { asked } = await show();
  press('Add one');
  await screen.findByRole('option', { name: 'science:vision' });
  fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'science:vision' } });
  const [, guaranteed] = screen.getAllByRole('button', { name: 'Add' });
  fireEvent.click(guaranteed as HTMLElement);
  fireEvent.change(screen.getAllByPlaceholderText('4').at(-1) as HTMLElement, {
    target: { value: '2' }
  });

  ask();

  await waitFor(() =>
    expect(sent(asked)).toMatchObject([
      { quotas: [{ scope: 'project', name: 'science:vision', guaranteed: { cpu: '2' } }] }
    ])
  );
});

// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { showPage } from '../../testing-page';
import { BulkUsers } from './BulkUsers';

afterEach(cleanup);

const ROOT = { name: 'root', roles: ['superadmin'], domain: 'default', projects: [] };
const MADE = { succeeded: 1, failed: 0, results: [{ index: 0, name: 'cohort-a' }] };
const TABLE = 'name,role\ncohort-a,user\n';

test('people are made from a file as from what is pasted', async () => {
  const { asked } = await showPage(<BulkUsers />, {
    areas: ['admin'],
    answer: ({ path }) => {
      const answers: Record<string, unknown> = { '/api/me': ROOT, '/api/accounts/csv': MADE };
      return answers[path] ?? { items: [], next: null };
    }
  });
  fireEvent.click(screen.getByRole('button', { name: 'Several at once' }));
  fireEvent.click(await screen.findByRole('radio', { name: 'From a table' }));
  const choose = (file: File): void => {
    const input = screen.getByLabelText('Choose a file…', { selector: 'input' });
    fireEvent.change(input, { target: { files: [file] } });
  };
  choose(new File([new Uint8Array([0xff, 0xfe])], 'picture.png'));
  await screen.findByText('This file is no text.');

  choose(new File(['\ufeff', TABLE], 'people.csv'));
  const table = screen.getByLabelText<HTMLTextAreaElement>('Table as CSV');
  await waitFor(() => expect(table.value).toBe(TABLE));
  fireEvent.click(screen.getByRole('button', { name: 'Create them' }));

  await screen.findByRole('heading', { name: 'Created: 1, failed: 0' });
  expect(asked.find(({ method }) => method === 'POST')?.body).toEqual({ csv: TABLE });
});

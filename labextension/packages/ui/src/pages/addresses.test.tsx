// @vitest-environment happy-dom
import { cleanup, waitFor } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { showPage, type Answer } from '../testing-page';
import { Pages } from '.';

afterEach(cleanup);

const ROOT = { name: 'root', domain: 'lab', project: '', projects: [], roles: ['superadmin'] };

test('a name with signs that divide addresses is asked for as it is', async () => {
  const answer: Answer = ({ path }) =>
    path === '/api/me' ? ROOT : Response.json({ message: 'no such' }, { status: 404 });
  const { asked } = await showPage(<Pages />, {
    answer,
    address: '/admin/projects/lab%3Avision'
  });

  await waitFor(() =>
    expect(asked.map(({ path }) => decodeURIComponent(path))).toContain(
      '/api/projects/lab:vision'
    )
  );
});

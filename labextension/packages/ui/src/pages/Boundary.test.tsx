// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import { Boundary } from './Boundary';

afterEach(cleanup);

test('a page that could not be loaded says so, and can be asked for again', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  let lost = true;
  function Part(): JSX.Element {
    if (lost) {
      throw new TypeError('Failed to fetch dynamically imported module');
    }
    return <p>there</p>;
  }
  await showPage(
    <Boundary onRetry={() => (lost = false)}>
      <Part />
    </Boundary>
  );
  await screen.findByText(/This could not be loaded/);

  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));

  await screen.findByText('there');
  said.mockRestore();
});

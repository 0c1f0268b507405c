// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { afterEach, expect, test, vi } from 'vitest';
import { showPage } from '../testing-page';
import type { Area } from '.';
import { Texts } from './Texts';

afterEach(cleanup);

const ABSENT = ['absent' as Area];

test('words that cannot be loaded are told of, and a newer version is loaded anew', async () => {
  const reload = vi.spyOn(window.location, 'reload').mockImplementation(() => undefined);
  await showPage(
    <Texts of={ABSENT} meanwhile={<p>loading</p>}>
      <p>there</p>
    </Texts>
  );
  await screen.findByText(/This could not be loaded/);

  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText(/This could not be loaded/);
  expect(reload).not.toHaveBeenCalled();

  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  expect(reload).toHaveBeenCalledTimes(1);
  reload.mockRestore();
});

const NODES: readonly Area[] = ['nodes'];

test('who chooses another language while words are loaded gets those', async () => {
  function Page(): JSX.Element {
    const { i18n } = useTranslation();
    // After the part below has begun to load what it needs in the language of before.
    useEffect(() => void i18n.changeLanguage('ko'), [i18n]);
    return (
      <Texts of={NODES} meanwhile={<p>loading</p>}>
        <p>there</p>
      </Texts>
    );
  }
  await showPage(<Page />);
  await screen.findByText('there');
});

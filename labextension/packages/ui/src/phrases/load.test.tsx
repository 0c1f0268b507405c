// @vitest-environment happy-dom
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { FromService } from '../FromService';
import type { Language } from '../i18n';
import { showPage } from '../testing-page';
import { useBook } from './load';

afterEach(cleanup);

/** Says whether there is a book, and what the service says. */
async function show(language: Language, text: string): Promise<void> {
  function Page(): JSX.Element {
    const book = useBook(language);
    return (
      <>
        <p>{book ? 'a book' : 'no book'}</p>
        <FromService text={text} />
      </>
    );
  }
  await showPage(<Page />, { texts: language, host: { language } });
}

test('a page on which the service says no sentence fetches no book of phrases', async () => {
  // Whoever fetches it has it with the next turn.
  await Promise.all([import('./book'), import('../i18n/phrases/th.json')]);
  await show('th', 'mem');
  await screen.findByText('หน่วยความจำ');
  await new Promise(turn => setTimeout(turn));

  expect(screen.getByText('no book')).toBeTruthy();
});

test('a sentence of the service fetches it', async () => {
  await show('ja', 'no room');

  await screen.findByText('a book');
});

test('so does the first thing that somebody does, which may be refused', async () => {
  await show('ko', '');
  expect(screen.getByText('no book')).toBeTruthy();

  fireEvent.keyDown(window, { key: 'Tab' });

  await screen.findByText('a book');
});

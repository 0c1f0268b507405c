// @vitest-environment happy-dom
import { createTranslator } from '@backendai/ui/i18n';
import { act, screen } from '@testing-library/react';
import { beforeEach, describe, expect, it } from 'vitest';
import { sayAround } from './around';

const PAGE = `
  <h1 data-backendai-say="titleFor" data-backendai-name="<b>ada</b>">New session</h1>
  <p data-backendai-say="about">It starts.</p>
  <p data-backendai-say="unheard-of">As it was</p>
  <p class="spawn-error-msg">
    Error: waited longer than 5 min, the pending timeout of the resource group gpu
  </p>
  <form id="spawn_form"><button type="submit">Start</button></form>`;

async function say(language: 'en' | 'ko' | 'ja'): Promise<void> {
  const translator = await createTranslator(language, ['launch']);
  await act(() => Promise.resolve(sayAround(document, translator, language)));
}

beforeEach(() => {
  document.body.innerHTML = PAGE;
});

describe("JupyterHub's page around the launch form", () => {
  it('is said in the language of the reader, with names as they are', async () => {
    await say('ko');
    expect(screen.getByRole('heading').textContent).toBe('<b>ada</b> 님의 새 세션');
    expect(document.querySelector('b')).toBeNull();
    expect(screen.getByText(/대기열에서/).lang).toBe('ko');
    expect(screen.getByText('As it was')).toBeTruthy();
    expect(screen.getByRole('button').textContent).toBe('시작');
  });

  it('tells what the spawner was refused with by the phrase book', async () => {
    const english = 'waited longer than 5 min, the pending timeout of the resource group gpu';
    await say('ja');
    await expect
      .poll(() => document.querySelector('.spawn-error-msg')?.textContent)
      .not.toContain(english);
    expect(document.querySelector('.spawn-error-msg')?.textContent).toContain('gpu');
  });

  it('keeps the English of it where that is the language', async () => {
    await say('en');
    expect(document.querySelector('.spawn-error-msg')?.textContent).toBe(
      'waited longer than 5 min, the pending timeout of the resource group gpu'
    );
  });
});

// @vitest-environment happy-dom
import { ApiError } from '@backendai/api';
import { cleanup, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { FromService } from './FromService';
import { Outlook } from './launch/Outlook';
import { LoadError } from './LoadError';
import { loadBook } from './phrases/load';
import { StatusWithReason } from './sessions/SessionStatus';
import { Waiting } from './sessions/Waiting';
import { makeSession, makeWhy } from './testing';
import { showPage } from './testing-page';

afterEach(cleanup);

const inEnglish = async (text: string | RegExp): Promise<boolean> =>
  (await screen.findByText(text)).closest('[lang=en]') !== null;

test('what the service says is heard as English, and names alone are not', async () => {
  await showPage(
    <>
      <FromService text="cuda.device: asks 6, 1 free" />
      <FromService text="mem" />
      <FromService text="" className="none" />
    </>,
    { host: { language: 'ja' } }
  );
  expect(await inEnglish('NVIDIA GPU: asks 6, 1 free')).toBe(true);
  expect(await inEnglish('Memory')).toBe(false);
  expect(document.querySelector('.none')).toBeNull();
});

test('reasons are English, and what the pages say around them is not', async () => {
  const why = makeWhy({
    reasons: ['cpu: asks 4, 2 free'],
    changes: [{ text: 'with 2 cpu', yours: true, slots: { cpu: '2' }, resource_group: null }]
  });
  const outcome = {
    refused: [],
    starts_now: false,
    nodes: [],
    slots: {},
    mounts: [],
    project: 'vision',
    resource_group: 'default',
    why: { ...why, reasons: ['mem: asks 9 GiB'] }
  };
  await showPage(
    <>
      <Waiting why={{ ...why, changes: [] }} />
      <Outlook outcome={outcome} language="ko" onApply={() => undefined} />
      <StatusWithReason session={makeSession({ reason: 'stopped by mina' })} />
    </>,
    { host: { language: 'ko' }, areas: ['work', 'launch'] }
  );
  expect(await inEnglish('CPU: asks 4, 2 free')).toBe(true);
  expect(await inEnglish('Memory: asks 9 GiB')).toBe(true);
  expect(await inEnglish('with 2 CPU')).toBe(true);
  expect(await inEnglish('stopped by mina')).toBe(true);
  expect(await inEnglish('Why it waits')).toBe(false);
});

test('what the service says is in the language of its reader', async () => {
  await showPage(
    <>
      <FromService text="waiting in the queue" />
      <FromService text="stopped by <b>mina</b>" />
      <FromService text="cpu: asks 4, 2 free on node-1; the moon is in the way" whole />
      <LoadError
        error={new ApiError('there is no folder plans', 404)}
        onRetry={() => undefined}
      />
    </>,
    { texts: 'ko', host: { language: 'ko' } }
  );
  const waiting = await screen.findByText('대기열에서 기다리고 있습니다');
  expect(waiting.closest('[lang=en]')).toBeNull();
  // What people have named stays text, and theirs.
  expect(screen.getByText(/<b>mina<\/b>/).textContent).toMatch(/\p{Script=Hangul}/u);
  const part = screen.getByText(/the moon is in the way/);
  expect(part.lang).toBe('en');
  expect(part.parentElement?.title).toMatch(/^CPU: .*\p{Script=Hangul}.*the moon/u);
  expect(screen.getByRole('alert').textContent).toMatch(/plans.*\p{Script=Hangul}/u);
});

test.each([
  ['why a session waits', '2 of 5 nodes: is in another resource group'],
  ['what would help', 'with 2 cpu instead of 4'],
  ['how it ended', 'its command ended with code 3'],
  ['what a node says', 'could not start: there is no space left on this node'],
  ['a request', 'startup_command: a batch session runs a command; say which'],
  ['a limit', 'project vision: cuda.shares 12 of 8 in use, asks 1'],
  ['a folder', "the folder plans is read-only for you; ask its owner for the permission 'rw'"],
  ['a file', 'there is no such file or folder'],
  ['sharing', 'only who is invited accepts an invitation'],
  ['signing in', 'wrong user name or password'],
  ['a password', 'password: choose another one than the present'],
  [
    "an administrator's noun",
    "there is a domain named 'lab' already, perhaps in another spelling; choose another name"
  ],
  ['an image', "image: there is no environment 'x'; on offer: none yet"],
  [
    'a registry',
    'the registry https://r.example does not have the tags of lab (it answered 404)'
  ],
  ['what is in use', 'user-policy small is in use: 12 users (alice, bob and 10 more)'],
  ['a job', 'timed out after 1 h 30 min'],
  [
    'storage',
    'storage host local is not available since 2026-01-02 03:04 UTC; administrators see why'
  ],
  ['what every page can be told', 'The present state does not allow this']
])('there is no English left in what is said of %s', async (_, text) => {
  await loadBook('ko');
  await showPage(<FromService text={text} className="said" />, {
    texts: 'ko',
    host: { language: 'ko' }
  });
  const said = document.querySelector('.said');
  expect(said?.textContent).toMatch(/\p{Script=Hangul}/u);
  expect(said?.closest('[lang=en]') ?? said?.querySelector('[lang=en]')).toBeNull();
});

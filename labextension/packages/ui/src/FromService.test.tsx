// @vitest-environment happy-dom
import { cleanup, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { FromService } from './FromService';
import { Outlook } from './launch/Outlook';
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

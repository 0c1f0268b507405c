import { describe, expect, test } from 'vitest';
import { launchAddress, readWish, writeWish } from './address';
import { findBatchErrors, NO_BATCH, startBatch, writeBatch } from './batch';
import { quote, writeCommand, writePython } from './code';
import { add, RECENT, type Launched } from './history';
import type { Wish } from './wish';

const job: Wish = {
  type: 'batch',
  image: 'python',
  name: 'train',
  project: null,
  slots: { cpu: '2', mem: '4g' },
  startup_command: "python train.py --say 'hi'",
  environ: { SEED: '7' },
  dependencies: ['prepare'],
  max_attempts: 3,
  batch_timeout: 5400,
  mounts: [{ folder: 'data', subpath: '2026', target: 'sets', permission: 'ro' }]
};

describe('a wish as an address', () => {
  test('is read as it was written', () => {
    const { project, ...said } = job;

    expect(project).toBeNull();
    expect(readWish(writeWish(job))).toEqual(said);
  });

  test('has nothing in it that goes without saying', () => {
    const wish: Wish = { image: 'python', type: 'interactive', cluster_size: 1, mounts: [] };

    expect(launchAddress(wish)).toBe('/launch?image=python');
    expect(launchAddress({})).toBe('/launch');
  });

  test('may be written by hand, and what is no wish is left out', () => {
    const query = new URLSearchParams('slot=cpu=2&slot=odd&mount=data&max_attempts=x&type=y');

    expect(readWish(query)).toEqual({ slots: { cpu: '2' }, mounts: [{ folder: 'data' }] });
  });
});

describe('a wish as code', () => {
  test('runs as a command, with every word whole', () => {
    const text = writeCommand(job).replaceAll(' \\\n  ', ' ');

    expect(text).toBe(
      'backendai run --image python --timeout 5400 --retries 2 --name train' +
        ' --resources cpu=2,mem=4g -v data/2026:sets:ro --after prepare --env SEED=7' +
        " -- 'python train.py --say '\\''hi'\\'''"
    );
  });

  test('asks for a notebook with another command', () => {
    const wish: Wish = { image: 'cr.example/python:3', slots: { cpu: '1' } };

    expect(writeCommand(wish)).toBe(
      'backendai session start --resources cpu=1 cr.example/python:3'
    );
  });

  test('is Python that names what it takes', () => {
    const text = writePython(job);

    expect(text).toContain('from backendai_hub.client import Client\n');
    expect(text).toContain('    type=SessionType.BATCH,\n');
    expect(text).toContain('    environ={"SEED": "7"},\n');
    expect(text).toContain('MountRequest(folder="data", subpath="2026", target="sets"');
    expect(text).not.toContain('project');
  });

  test('quotes whatever a shell would read otherwise', () => {
    expect(quote('plain-1.2/a=b')).toBe('plain-1.2/a=b');
    expect(quote('$HOME `x`')).toBe("'$HOME `x`'");
  });
});

describe('the fields of a batch job', () => {
  test('are filled by a wish, and say the same again', () => {
    const state = startBatch(job);

    expect(state).toMatchObject({ environ: 'SEED=7', after: 'prepare', timeout: '1h 30m' });
    expect(writeBatch(state)).toMatchObject({
      type: 'batch',
      environ: { SEED: '7' },
      dependencies: ['prepare'],
      max_attempts: 3,
      batch_timeout: 5400
    });
  });

  test('tell a moment in the reader’s own time, and the same moment back', () => {
    const starts_at = '2026-03-04T05:06:00.000Z';

    expect(writeBatch(startBatch({ starts_at })).starts_at).toBe(starts_at);
  });

  test('say what is wrong with them', () => {
    expect(findBatchErrors(NO_BATCH)).toEqual({ command: 'launchPage.commandMissing' });
    const wrong = {
      ...NO_BATCH,
      command: 'x',
      environ: '1A=b',
      timeout: 'soon',
      attempts: '0'
    };
    expect(Object.keys(findBatchErrors(wrong)).sort()).toEqual([
      'attempts',
      'environ',
      'timeout'
    ]);
    const fine = { ...wrong, environ: 'A=b=c\n\n_B=', timeout: '90m', attempts: '2' };
    expect(findBatchErrors(fine)).toEqual({});
  });
});

describe('what was launched before', () => {
  const one = (id: string, changes: Partial<Launched> = {}): Launched => ({
    id,
    at: '',
    title: id,
    wish: { image: id },
    kept: false,
    ...changes
  });

  test('is the last few, and everything that somebody keeps', () => {
    let list: Launched[] = [one('t', { kept: true })];
    for (let number = 0; number < 8; number += 1) {
      list = add(list, one(`n${number}`));
    }

    expect(list.filter(each => !each.kept).map(each => each.id)).toEqual(
      ['n7', 'n6', 'n5', 'n4', 'n3'].slice(0, RECENT)
    );
    expect(list.some(each => each.kept)).toBe(true);
  });

  test('is not told twice', () => {
    const list = add([one('a'), one('b')], one('c', { wish: { image: 'b' } }));

    expect(list.map(each => each.id)).toEqual(['c', 'a']);
  });
});

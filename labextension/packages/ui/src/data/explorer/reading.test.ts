import { describe, expect, test } from 'vitest';
import { isArchive, kindOf, readText } from './kinds';
import { readNotebook } from './notebooks';
import { holdsNumbers, readRows, separatorOf } from './tables';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a file', () => {
  test.each([
    ['cat.PNG', 'image'],
    ['run.ipynb', 'notebook'],
    ['sets.csv', 'table'],
    ['model.tar.gz', 'archive'],
    ['drawing.svg', 'text'],
    ['page.html', 'text'],
    ['Makefile', 'text']
  ])('called %s is looked at as %s', (name, kind) => {
    expect(kindOf(name)).toBe(kind);
  });

  test('is unpacked where that can be', () => {
    expect(['a.zip', 'a.tar.gz', 'a.tgz', 'a.TAR'].every(isArchive)).toBe(true);
    expect(['a.gz', 'zip', 'a.zip.txt'].some(isArchive)).toBe(false);
  });

  test('is text only where all of it is', () => {
    expect(readText(bytes('héllo'), true)).toBe('héllo');
    expect(readText(new Uint8Array([104, 0, 105]), true)).toBeNull();
    expect(readText(new Uint8Array([0xff, 0xfe, 0x41]), true)).toBeNull();
  });

  test('that is cut off within a character is text', () => {
    expect(readText(bytes('abcé').slice(0, 4), false)).toBe('abc');
    expect(readText(bytes('abcé').slice(0, 4), true)).toBeNull();
  });
});

describe('values', () => {
  test('may hold what separates them, where they are quoted', () => {
    expect(readRows('a,"b, ""c""\nd",e\r\nf,,\n', ',', 10)).toEqual([
      ['a', 'b, "c"\nd', 'e'],
      ['f', '', '']
    ]);
  });

  test('are read only as far as they are shown', () => {
    expect(readRows('1\n2\n3\n4\n', ',', 2)).toEqual([['1'], ['2']]);
    expect(readRows('1\n2', ',', 9)).toEqual([['1'], ['2']]);
  });

  test.each([
    [['1', '-2.5', '', '3,000', '1e-4', '7 %'], true],
    [['00017', '00018'], false],
    [['1', 'two'], false],
    [['2026-01-02'], false],
    [['', ''], false]
  ])('tells numbers from what only has digits: %j', (cells, expected) => {
    expect(
      holdsNumbers(
        cells.map(cell => [cell]),
        0
      )
    ).toBe(expected);
  });

  test('are separated by what the first line has most of', () => {
    expect(separatorOf('a.csv', 'x;y;z\n1,2;3;4')).toBe(';');
    expect(separatorOf('a.tsv', 'x,y,z')).toBe('\t');
    expect(separatorOf('a.csv', 'single')).toBe(',');
  });
});

describe('a notebook', () => {
  const read = (cells: object[]) => readNotebook(JSON.stringify({ cells }));

  test('is shown as plain text', () => {
    const [cell] =
      read([
        {
          cell_type: 'code',
          execution_count: 3,
          source: ['a = 1\n', 'a'],
          outputs: [
            { output_type: 'stream', text: ['\u001b[31mred\u001b[0m\n'] },
            { output_type: 'execute_result', data: { 'text/plain': '1' } }
          ]
        }
      ]) ?? [];

    expect(cell).toEqual({
      kind: 'code',
      source: 'a = 1\na',
      count: 3,
      outputs: [
        { kind: 'text', text: 'red\n' },
        { kind: 'text', text: '1' }
      ]
    });
  });

  test('shows no page that somebody has put into it', () => {
    const evil = '<script>alert(1)</script>';
    const [cell] =
      read([
        {
          cell_type: 'code',
          source: '',
          outputs: [
            {
              output_type: 'display_data',
              data: { 'text/html': evil, 'text/plain': '<Page>' }
            },
            { output_type: 'display_data', data: { 'text/html': evil } },
            { output_type: 'display_data', data: { 'image/svg+xml': evil } },
            { output_type: 'display_data', data: { 'image/png': '"><script>' } }
          ]
        }
      ]) ?? [];

    expect(cell?.outputs).toEqual([
      { kind: 'text', text: '<Page>' },
      { kind: 'other', types: ['text/html'] },
      { kind: 'other', types: ['image/svg+xml'] },
      { kind: 'other', types: ['image/png'] }
    ]);
  });

  test('shows pictures as data', () => {
    const [cell] =
      read([
        {
          cell_type: 'code',
          source: '',
          outputs: [
            { output_type: 'display_data', data: { 'image/png': ['iVBO\n', 'Rw0=\n'] } }
          ]
        }
      ]) ?? [];

    expect(cell?.outputs[0]).toMatchObject({ source: 'data:image/png;base64,iVBORw0=' });
  });

  test('tells what went wrong in it', () => {
    const [cell] =
      read([
        {
          cell_type: 'code',
          source: '1/0',
          outputs: [{ output_type: 'error', ename: 'ZeroDivisionError', evalue: 'by zero' }]
        }
      ]) ?? [];

    expect(cell?.outputs).toEqual([{ kind: 'error', text: 'ZeroDivisionError: by zero' }]);
  });

  test('is nothing else', () => {
    expect(readNotebook('not json')).toBeNull();
    expect(readNotebook('[]')).toBeNull();
    expect(readNotebook('{"cells": 1}')).toBeNull();
    expect(readNotebook('{"cells": [1, {"cell_type": "odd"}]}')).toEqual([
      { kind: 'raw', source: '', count: null, outputs: [] }
    ]);
  });
});

import { describe, expect, test } from 'vitest';
import { entriesOf, gatherEntries, gatherPicked, type DroppedEntry } from './gather';

function file(name: string): DroppedEntry {
  return {
    name,
    isFile: true,
    isDirectory: false,
    file: found => found(new File(['x'], name))
  };
}

/** A folder whose entries come a few at a time, as browsers hand them out. */
function folder(name: string, children: DroppedEntry[], atOnce = 2): DroppedEntry {
  return {
    name,
    isFile: false,
    isDirectory: true,
    createReader: () => {
      let at = 0;
      return {
        readEntries: found => {
          found(children.slice(at, at + atOnce));
          at += atOnce;
        }
      };
    }
  };
}

describe('a drop', () => {
  test('brings all files of a folder, at their paths, however many', async () => {
    const many = Array.from({ length: 301 }, (_, at) => file(`${at}.txt`));

    const { files } = await gatherEntries([folder('set', many, 100), file('note')]);

    expect(files).toHaveLength(302);
    expect(files[0]?.path).toBe('set/0.txt');
    expect(files.at(-1)?.path).toBe('note');
  });

  test('brings folders in folders, and those with nothing in them', async () => {
    const dropped = folder('a', [folder('b', [file('c')]), folder('void', [])]);

    const { files, empty } = await gatherEntries([dropped]);

    expect(files.map(each => each.path)).toEqual(['a/b/c']);
    expect(empty).toEqual(['a/void']);
  });

  test('that breaks off says so', async () => {
    const broken: DroppedEntry = {
      name: 'gone',
      isFile: true,
      isDirectory: false,
      file: (_, failed) => failed(new Error('it is gone'))
    };

    await expect(gatherEntries([broken])).rejects.toThrow('it is gone');
  });

  test('of text brings nothing', () => {
    const items = [
      { kind: 'string', webkitGetAsEntry: () => null },
      { kind: 'file', webkitGetAsEntry: () => file('a') }
    ];

    expect(entriesOf({ items } as unknown as DataTransfer).map(each => each.name)).toEqual([
      'a'
    ]);
  });
});

test('a picked folder keeps the paths of its files', () => {
  const inside = new File(['x'], 'b.txt');
  Object.defineProperty(inside, 'webkitRelativePath', { value: 'a/b.txt' });

  expect(gatherPicked([inside, new File(['x'], 'c.txt')]).files.map(f => f.path)).toEqual([
    'a/b.txt',
    'c.txt'
  ]);
});

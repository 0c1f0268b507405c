import { expect, test } from 'vitest';
import { isPermission, wrongPath, wrongTogether } from './dotfiles';

const file = (
  path: string,
  content = ''
): { path: string; permission: string; content: string } => ({
  path,
  permission: '644',
  content
});

test.each(['.vimrc', '.config/git/config', '.ssh/config', 'a b', '.ของฉัน'])(
  '%s can be a dotfile',
  path => expect(wrongPath(path)).toBeNull()
);

test.each([
  ['', 'empty'],
  ['a'.repeat(257), 'long'],
  ['a\\b', 'letters'],
  ['a\u200bb', 'letters'],
  ['/etc/passwd', 'absolute'],
  ['~/.vimrc', 'absolute'],
  ['a/../b', 'dots'],
  ['a//b', 'dots'],
  ['1/2/3/4/5/6/7/8/9', 'deep'],
  ['.ssh', 'reserved'],
  ['.ssh/authorized_keys', 'reserved'],
  ['.backendai/x', 'reserved']
])('%s cannot: %s', (path, why) => expect(wrongPath(path)).toBe(why));

test('a path is said once, and is not both a file and a folder', () => {
  expect(wrongTogether([file('.a'), file('.b')])).toBeNull();
  expect(wrongTogether([file('.a'), file('.a')])).toBe('twice');
  expect(wrongTogether([file('.vim'), file('.vim/colors')])).toBe('fileAndFolder');
  expect(wrongTogether([file('.a', 'x'.repeat(40_000)), file('.b', 'x'.repeat(40_000))])).toBe(
    'tooMuch'
  );
});

test('permissions are three octal digits', () => {
  expect(['644', '600'].every(isPermission)).toBe(true);
  expect(['64', '0644', '888', 'rwx'].some(isPermission)).toBe(false);
});

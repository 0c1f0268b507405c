import { describe, expect, test } from 'vitest';
import english from '../i18n/phrases/en.json';
import { Book, type Piece } from './book';

const BOOK = new Book({
  'waiting in the queue': '대기열에서 기다리고 있습니다',
  'stopped by {name}': '{name} 님이 중지했습니다',
  '{slot}: asks {amount}, {best} free on {name}': '{slot}: {amount} 요청, {name}에 {best} 남음',
  '{many} of {nodes}: {why}': '{nodes} 중 {many}: {why}',
  '{count} nodes': '노드 {count}개',
  'is in another resource group': '다른 자원 그룹에 있습니다',
  'container {name}: {part}': '컨테이너 {name}: {part}',
  'no node has joined yet; it starts when one does':
    '아직 참여한 노드가 없습니다; 참여하면 시작됩니다',
  'when {who} ends': '{who}이(가) 끝나면',
  'session {after}': '{after} 세션',
  'with {ahead} before it in the queue': '대기열에서 앞에 {ahead}개',
  'timed out after {seconds}': '{seconds} 뒤 시간이 다 되었습니다',
  '{what} missing': '{what} 없음',
  'the folder {name} is {status}; {hint}': '{name} 폴더: {status}; {hint}',
  'restore it first': '먼저 복원하십시오',
  '{kind} {name}: {slot} {used} of {limit} in use':
    '{kind} {name}: {slot} {limit} 중 {used} 사용',
  '{many} have {amount} {slot} free': '{many}에 {slot} {amount} 남음',
  '{what} {limit}, has {used}': '{what} {limit}, 지금 {used}',
  'the folder {name} may hold': '{name} 폴더의 한도',
  'not a cursor of this list': '이 목록의 위치가 아닙니다'
});
const plain = (): null => null;
const told = (text: string, book = BOOK): string =>
  book
    .say(text, plain)
    .map(piece => piece.text)
    .join('');

describe('a sentence of the service', () => {
  test.each([
    ['waiting in the queue', '대기열에서 기다리고 있습니다'],
    ['stopped by mina', 'mina 님이 중지했습니다'],
    ['cpu: asks 4, 2 free on n1', 'cpu: 4 요청, n1에 2 남음']
  ])('is said by its template: %s', (text, said) => {
    expect(told(text)).toBe(said);
  });

  test.each([
    ['2 of 5 nodes: is in another resource group', '노드 5개 중 2: 다른 자원 그룹에 있습니다'],
    ['the folder d is gone; restore it first', 'd 폴더: gone; 먼저 복원하십시오'],
    ['container main: cpu: asks 4, 2 free on n1', '컨테이너 main: cpu: 4 요청, n1에 2 남음']
  ])('says what stands in its places, too: %s', (text, said) => {
    expect(told(text)).toBe(said);
  });

  test.each([
    [
      'cpu: asks 4, 2 free on n1; mem: asks 8, 1 free on n2',
      'cpu: 4 요청, n1에 2 남음; mem: 8 요청, n2에 1 남음'
    ],
    [
      'no node has joined yet; it starts when one does; stopped by mina',
      '아직 참여한 노드가 없습니다; 참여하면 시작됩니다; mina 님이 중지했습니다'
    ],
    [
      'when session a ends, with 3 before it in the queue',
      'a 세션이(가) 끝나면, 대기열에서 앞에 3개'
    ],
    ['after: not a cursor of this list', 'after: 이 목록의 위치가 아닙니다'],
    [
      'stopped by mina (waiting in the queue)',
      'mina 님이 중지했습니다 (대기열에서 기다리고 있습니다)'
    ]
  ])('that is put together is said part by part: %s', (text, said) => {
    expect(told(text)).toBe(said);
  });

  test.each([
    ['user mina: mem 7 GiB of 16 GiB in use', 'user mina: mem 16 GiB 중 7 GiB 사용'],
    ['2 nodes have 64 GiB mem free', '노드 2개에 mem 64 GiB 남음'],
    [
      "the folder 'my data' may hold 7 GiB, has 6 GiB",
      "'my data' 폴더의 한도 7 GiB, 지금 6 GiB"
    ]
  ])('knows amounts by their units: %s', (text, said) => {
    expect(told(text)).toBe(said);
  });

  test('knows its own words from names', () => {
    const book = new Book({ copy: '복사', '{kind} of {name}': '{name}의 {kind}' });
    expect(told('copy of copy', book)).toBe('copy의 복사');
  });

  test('leaves what somebody has said behind it', () => {
    const [pieces] = [BOOK.say('stopped by mina: it was in the way of others', plain)];
    expect(pieces).toEqual([
      { text: 'mina 님이 중지했습니다: ', english: false },
      { text: 'it was in the way of others', english: true }
    ]);
  });

  test('leaves what somebody has written in quotes', () => {
    expect(told("stopped by '2 of 5 nodes: waiting in the queue'")).toBe(
      "'2 of 5 nodes: waiting in the queue' 님이 중지했습니다"
    );
  });

  test('says amounts and states as its reader writes them', () => {
    const pieces = BOOK.say('timed out after 1 h', text => (text === '1 h' ? '1시간' : null));
    expect(pieces).toEqual([{ text: '1시간 뒤 시간이 다 되었습니다', english: false }]);
  });
});

describe('what nobody has translated', () => {
  test('stays English, and is marked so beside what is translated', () => {
    const pieces: Piece[] = BOOK.say('stopped by mina; the moon is made of cheese', plain);
    expect(pieces).toEqual([
      { text: 'mina 님이 중지했습니다; ', english: false },
      { text: 'the moon is made of cheese', english: true }
    ]);
  });

  test('is not torn apart by a template that says next to nothing', () => {
    const text = 'a long sentence about something else entirely is missing';
    expect(BOOK.say(text, plain)).toEqual([{ text, english: true }]);
  });

  test('a book without phrases says as it is', () => {
    expect(told('stopped by mina', new Book({}))).toBe('stopped by mina');
  });
});

describe('hostile texts', () => {
  const all = new Book(
    Object.fromEntries(Object.values(english).flatMap(each => each.map(text => [text, text])))
  );

  test.each([
    ['a name full of separators', `stopped by ${'; '.repeat(900)}`],
    ['brackets', `x ${'('.repeat(900)}${')'.repeat(900)}`],
    ['colons', ': '.repeat(999)],
    ['pieces of templates', `cpu: ${'asks 4, 2 free on '.repeat(100)}`],
    ['what could be many sentences', 'stopped by a; '.repeat(140)],
    ['amounts', `${'1'.repeat(900)} ${'1 '.repeat(500)}in all`],
    ['places', '{slot}: asks {amount} '.repeat(80)],
    ['a log', 'it ended; '.repeat(100_000)]
  ])('are read in moments, and nothing of them is lost: %s', (_, text) => {
    const begun = performance.now();
    expect(told(text, all)).toBe(text);
    expect(performance.now() - begun).toBeLessThan(1000);
  });

  test('is text, whatever it looks like', () => {
    expect(told('stopped by <img src=x onerror=alert(1)> $& $1')).toBe(
      '<img src=x onerror=alert(1)> $& $1 님이 중지했습니다'
    );
  });
});

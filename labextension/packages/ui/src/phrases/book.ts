/**
 * Says the service's English sentences in another language, by the templates they were
 * made from: `{slot}: asks {amount}` says `mem: asks 2 GiB`.
 *
 * No text is ever run as a pattern: a template is a row of literals that are looked for
 * one after the other, so its cost grows with the length of the text and no faster.
 */

/** A part of what is said; `english` where nobody has translated it. */
export interface Piece {
  text: string;
  english: boolean;
}

/** How a name or an amount is written in the reader's language; null as it is. */
export type Word = (text: string) => string | null;

interface Template {
  english: string;
  /** What is between its places; one more than there are places. */
  literals: string[];
  places: string[];
  /** The translation: literals, and numbers of places. */
  said: (string | number)[];
  /** Letters, and what it says in all: more of both is closer to a text. */
  weight: number;
  length: number;
}

/** Places in which one word is the service's; in all others it is a name. */
const WORDED = /^(?:kind|noun|role|status|state|stop|slot|type|what|words|why|said)\d*$/;
/** What somebody has named. */
const QUOTED = /^'[^']*'$|^"[^"]*"$/;
const PLACE = /\{(\w*)\}/;
/** Longer texts are logs, not sentences. */
const LONGEST = 2000;
const DEEPEST = 5;
/** How many parts of one sentence are looked up; each costs a walk through the book. */
const MOST_LOOKUPS = 60;
const MOST_PARTS = 16;
/** A template with fewer letters says little; what stands in it is known, or short. */
const LIGHT = { named: 9, nameless: 12 };
/** What has more words is a sentence, and no name. */
const FEW_WORDS = 4;

export class Book {
  /** Sentences without a place. */
  private whole = new Map<string, string>();
  /** Templates by the first letters of what they begin with; `''` where with a place. */
  private shelves = new Map<string, Template[]>();

  constructor(phrases: Readonly<Record<string, string>>) {
    for (const [english, said] of Object.entries(phrases)) {
      const template = compile(english, said);
      if (template.literals.length === 1) {
        this.whole.set(english, said);
      } else {
        const shelf = shelfOf(template.literals[0] ?? '');
        const templates = this.shelves.get(shelf) ?? [];
        templates.push(template);
        this.shelves.set(shelf, templates);
      }
    }
    this.shelves.forEach(shelf => shelf.sort((a, b) => b.length - a.length));
  }

  say(text: string, word: Word): Piece[] {
    const reading = new Reading(this, word);
    return text.length > LONGEST ? reading.leave(text) : merge(reading.say(text, 0));
  }

  /** A sentence without places. */
  exactly(text: string): string | undefined {
    return this.whole.get(text);
  }

  /** The template that says most of *text*, and what stands in its places. */
  find(text: string, strict: boolean): { template: Template; values: string[] } | null {
    let best: { template: Template; values: string[] } | null = null;
    for (const key of new Set(['', shelfOf(text)])) {
      for (const template of this.shelves.get(key) ?? []) {
        if (best && best.template.length >= template.length) {
          break;
        }
        const values = match(template, text);
        if (values && !(strict && values.some(value => value.includes('; ')))) {
          best = { template, values };
          break;
        }
      }
    }
    return best;
  }
}

/** One sentence on its way through the book. */
class Reading {
  private lookups = MOST_LOOKUPS;

  constructor(
    private book: Book,
    private word: Word
  ) {}

  say(text: string, depth: number): Piece[] {
    return this.translate(text, depth) ?? this.leave(text);
  }

  /** As it is, but for what every reader calls by another name. */
  leave(text: string): Piece[] {
    const said = this.word(text);
    return [{ text: said ?? text, english: said === null && isEnglish(text) }];
  }

  private translate(text: string, depth: number): Piece[] | null {
    const known = this.book.exactly(text);
    if (known !== undefined) {
      return own(known);
    }
    if (this.lookups <= 0 || depth > DEEPEST || !text.includes(' ')) {
      return null;
    }
    return this.best([
      () => this.withBracket(text, depth, true),
      () => this.fill(text, depth, true),
      () => this.divide(text, '; ', depth),
      () => this.fill(text, depth, false),
      () => this.divide(text, ', ', depth),
      () => this.aroundColon(text, depth),
      () => this.withBracket(text, depth, false)
    ]);
  }

  /** The first that leaves nothing in English, or the one that leaves least. */
  private best(ways: (() => Piece[] | null)[]): Piece[] | null {
    let best: Piece[] | null = null;
    for (const way of ways) {
      const said = way();
      if (said && (!best || leftIn(said) < leftIn(best))) {
        best = said;
      }
      if (best && leftIn(best) === 0) {
        break;
      }
    }
    return best;
  }

  private fill(text: string, depth: number, strict: boolean): Piece[] | null {
    if (this.lookups <= 0) {
      return null;
    }
    this.lookups -= 1;
    const found = this.book.find(text, strict);
    if (!found) {
      return null;
    }
    const { template, values } = found;
    const said = values.map((value, at) =>
      this.value(value, depth + 1, WORDED.test(template.places[at] ?? ''))
    );
    const isUnlikely = said.some(
      (pieces, at) => isLight(template) && !isRest(template, at) && leftIn(pieces) > 0
    );
    return isUnlikely
      ? null
      : template.said.flatMap(part =>
          typeof part === 'string' ? own(part) : (said[part] ?? [])
        );
  }

  /** What stands in a place: most often a name, which is not translated. */
  private value(text: string, depth: number, isWord = false): Piece[] {
    const isName = QUOTED.test(text) || !(isWord || text.includes(' '));
    const said = isName ? null : this.translate(text, depth);
    const isList = text.split(', ').every(each => each.split(' ').length <= FEW_WORDS);
    return said ?? (isList ? own(this.word(text) ?? text) : this.leave(text));
  }

  /** Says sentences that are put together, as many of them at once as make one. */
  private divide(text: string, by: string, depth: number): Piece[] | null {
    const parts = text.split(by);
    if (parts.length < 2 || parts.length > MOST_PARTS) {
      return null;
    }
    const said: Piece[][] = [];
    let known = false;
    for (let from = 0; from < parts.length;) {
      const [pieces, to] = this.longest(parts, from, by, depth);
      known ||= pieces !== null;
      const part = parts[from] ?? '';
      said.push(
        pieces ?? (by === '; ' ? this.say(part, depth + 1) : this.value(part, depth + 1))
      );
      from = to;
    }
    return known ? said.flatMap((pieces, at) => (at ? [...own(by), ...pieces] : pieces)) : null;
  }

  private longest(
    parts: string[],
    from: number,
    by: string,
    depth: number
  ): [Piece[] | null, number] {
    for (let to = parts.length; to > from; to--) {
      if (to - from < parts.length) {
        const text = parts.slice(from, to).join(by);
        const known = this.book.exactly(text);
        const pieces =
          known !== undefined
            ? own(known)
            : text.includes(' ')
              ? this.fill(text, depth + 1, true)
              : null;
        if (pieces) {
          return [pieces, to];
        }
      }
    }
    return [null, from + 1];
  }

  /** `labels: {sentence}`, or `{sentence}: what somebody has written`. */
  private aroundColon(text: string, depth: number): Piece[] | null {
    const at = text.indexOf(': ');
    if (at <= 0) {
      return null;
    }
    const [head, rest] = [text.slice(0, at), text.slice(at + 2)];
    const said = this.translate(rest, depth + 1);
    const named = said ? this.value(head, depth + 1) : this.translate(head, depth + 1);
    return named && [...named, ...own(': '), ...(said ?? this.value(rest, depth + 1))];
  }

  /** `{sentence} ({sentence})`; a name may end in a bracket, too, so both must be known. */
  private withBracket(text: string, depth: number, strict: boolean): Piece[] | null {
    const at = text.endsWith(')') ? text.lastIndexOf(' (') : -1;
    if (at <= 0) {
      return null;
    }
    const inside = text.slice(at + 2, -1);
    const why = this.translate(inside, depth + 1);
    const said = strict && !why ? null : this.translate(text.slice(0, at), depth + 1);
    return (
      said && [...said, ...own(' ('), ...(why ?? this.value(inside, depth + 1)), ...own(')')]
    );
  }
}

/** Whether it is more than a name. */
const isEnglish = (text: string): boolean => /\p{L} +\p{L}/u.test(text) && !QUOTED.test(text);

const own = (text: string): Piece[] => [{ text, english: false }];

const leftIn = (pieces: Piece[]): number =>
  pieces.reduce((letters, { text, english }) => letters + (english ? text.length : 0), 0);

function merge(pieces: Piece[]): Piece[] {
  const merged: Piece[] = [];
  for (const piece of pieces) {
    const last = merged.at(-1);
    if (last && last.english === piece.english) {
      last.text += piece.text;
    } else if (piece.text) {
      merged.push({ ...piece });
    }
  }
  return merged;
}

const shelfOf = (text: string): string => (text.length < 3 ? '' : text.slice(0, 3));

/** Splits at places: literals and names in turn. */
const take = (text: string): string[] => text.split(new RegExp(PLACE, 'g'));

function compile(english: string, translation: string): Template {
  const parts = take(english);
  const literals = parts.filter((_, at) => at % 2 === 0);
  const names = parts.filter((_, at) => at % 2 === 1);
  const said = take(translation).map((part, at) => (at % 2 === 0 ? part : names.indexOf(part)));
  const all = literals.join('');
  const weight = all.replace(/\P{L}/gu, '').length;
  return {
    english,
    literals,
    places: names,
    said: said.filter(part => part !== '' && part !== -1),
    weight,
    length: all.length
  };
}

/** What stands in the places of *template* if it says *text*; the shortest that can. */
function match({ literals }: Template, text: string): string[] | null {
  const head = literals[0] ?? '';
  const tail = literals.at(-1) ?? '';
  const end = text.length - tail.length;
  if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) {
    return null;
  }
  const values: string[] = [];
  let from = head.length;
  for (let next = 1; next < literals.length - 1; next++) {
    const literal = literals[next] ?? '';
    let at = text.indexOf(literal, from);
    if (at < 0 || at + literal.length > end) {
      return null;
    }
    if (literal === ' ') {
      const until =
        next + 2 < literals.length ? text.indexOf(literals[next + 1] ?? '', at + 1) : end;
      at = lastBlank(text, from, at, until < 0 ? end : until);
    }
    values.push(text.slice(from, at));
    from = at + literal.length;
  }
  return [...values, text.slice(from, end)];
}

const AMOUNT = /^\d[\d.]*(?: (?:[KMGTPE]iB|bytes))?$/;

const isAmount = (text: string): boolean => text.length < 24 && AMOUNT.test(text);

/** Where `mem 64 GiB` and `64 GiB mem` are two, which begin at *from*: at the amount. */
function lastBlank(text: string, from: number, first: number, until: number): number {
  for (
    let at = text.lastIndexOf(' ', until - 1);
    at > first;
    at = text.lastIndexOf(' ', at - 1)
  ) {
    if (isAmount(text.slice(at + 1, until)) || isAmount(text.slice(from, at))) {
      return at;
    }
  }
  return first;
}

/** Whether it says so little that no sentence can stand in it but one of the book. */
const isLight = ({ literals, weight }: Template): boolean =>
  weight < (literals[0] ? LIGHT.named : LIGHT.nameless);

/** Whether the place *at* holds all that comes behind `container main: `. */
const isRest = ({ literals }: Template, at: number): boolean =>
  at === literals.length - 2 && (literals[at] ?? '').endsWith(': ');

/** Times as people say them, in their language. */

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
];

/* Making a format takes longer than using it; lists have hundreds of moments. */
const relative = new Map<string, Intl.RelativeTimeFormat>();
const exact = new Map<string, Intl.DateTimeFormat>();

function formatOf<Format>(
  known: Map<string, Format>,
  language: string,
  make: () => Format
): Format {
  const format = known.get(language) ?? make();
  known.set(language, format);
  return format;
}

export function ago(iso: string, now: number, language: string): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1000);
  const format = formatOf(
    relative,
    language,
    () => new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })
  );
  // Clocks of two machines differ a little: nothing has started in the future.
  const past = Math.min(0, seconds);
  if (past > -10) {
    return format.format(0, 'second');
  }
  for (const [unit, size] of STEPS) {
    if (Math.abs(past) >= size) {
      return format.format(Math.trunc(past / size), unit);
    }
  }
  return format.format(0, 'second');
}

const short = new Map<string, Intl.DateTimeFormat>();

/** A moment in a sentence, where seconds do not count. */
export function toTheMinute(iso: string, language: string): string {
  const format = formatOf(
    short,
    language,
    () => new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' })
  );
  return format.format(new Date(iso));
}

export function exactly(iso: string, language: string): string {
  const format = formatOf(
    exact,
    language,
    () => new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })
  );
  return format.format(new Date(iso));
}

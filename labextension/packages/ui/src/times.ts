/** Times as people say them, in their language. */

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
];

export function ago(iso: string, now: number, language: string): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1000);
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
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

export function exactly(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(
    new Date(iso)
  );
}

/** Lengths of time, as people write them, as the service counts them: in seconds. */

const SIZES = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;
const WHOLE = /^(\d+(?:\.\d+)?)\s*([wdhms]?)(?:\s+|$)/;

/** Read `90`, `8h` or `1d 12h`: seconds. Returns null if it is none of these. */
export function parseDuration(text: string): number | null {
  let rest = text.trim().toLowerCase();
  let seconds = 0;
  if (!rest) {
    return null;
  }
  while (rest) {
    const match = WHOLE.exec(rest) ?? /^(\d+(?:\.\d+)?)([wdhms])/.exec(rest);
    if (!match) {
      return null;
    }
    seconds += Number(match[1]) * SIZES[(match[2] || 's') as keyof typeof SIZES];
    rest = rest.slice(match[0].length);
  }
  return Math.round(seconds);
}

/** Write seconds shortly and exactly: `1d 12h`. */
export function writeDuration(seconds: number): string {
  const parts: string[] = [];
  let rest = seconds;
  for (const [unit, size] of Object.entries(SIZES).slice(1)) {
    if (rest >= size) {
      parts.push(`${Math.floor(rest / size)}${unit}`);
      rest %= size;
    }
  }
  return parts.join(' ') || '0s';
}

const NAMES = { d: 'day', h: 'hour', m: 'minute', s: 'second' } as const;

/** Say seconds in the reader's language, in at most two units: `1 day 12 hr`. */
export function showDuration(seconds: number, language: string): string {
  const parts: string[] = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [key, unit] of Object.entries(NAMES)) {
    const size = SIZES[key as keyof typeof NAMES];
    const count = Math.floor(rest / size);
    if (count > 0 || (unit === 'second' && parts.length === 0)) {
      const format = { style: 'unit', unit, unitDisplay: 'short' } as const;
      parts.push(new Intl.NumberFormat(language, format).format(count));
      rest -= count * size;
    }
    if (parts.length === 2) {
      break;
    }
  }
  return parts.join(' ');
}

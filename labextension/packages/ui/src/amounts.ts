/** Amounts of resources, read and written as people write them. */

const UNITS = ['', 'k', 'm', 'g', 't', 'p', 'e'];
const BYTES = /^(\d+(?:\.\d+)?)([kmgtpe]?)(?:i?b)?$/;
const COUNT = /^\d+(\.\d+)?$/;
export const GIB = 2 ** 30;

/** Whether a slot is counted in bytes, by the naming convention of the service. */
export function isBytes(slot: string): boolean {
  return slot === 'mem' || slot === 'shmem' || slot.endsWith('.mem');
}

/** Read `"0.5"` or `"16g"`: bytes, or a plain number. Returns null if it is neither. */
export function parseAmount(slot: string, text: string): number | null {
  const plain = text.trim().toLowerCase();
  if (!isBytes(slot)) {
    return COUNT.test(plain) ? Number(plain) : null;
  }
  const match = BYTES.exec(plain);
  if (!match) {
    return null;
  }
  return Math.round(Number(match[1]) * 1024 ** UNITS.indexOf(match[2] ?? ''));
}

/** Write an amount for the API, exactly: `"1536m"`, `"0.5"`. */
export function writeAmount(slot: string, amount: number): string {
  if (!isBytes(slot)) {
    return String(Math.round(amount * 1000) / 1000);
  }
  for (const power of [6, 5, 4, 3, 2, 1]) {
    const unit = 1024 ** power;
    if (amount > 0 && amount % unit === 0) {
      return `${amount / unit}${UNITS[power]}`;
    }
  }
  return String(Math.round(amount));
}

/** Write an amount for a reader: `16 GiB`, `0.5`. */
export function showAmount(slot: string, amount: number, language: string): string {
  if (!isBytes(slot)) {
    return number(amount, language, 3);
  }
  if (amount === 0) {
    return '0';
  }
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let power = 0;
  let rest = amount;
  while (rest >= 1024 && power < names.length - 1) {
    rest /= 1024;
    power += 1;
  }
  return `${number(rest, language, 1)} ${names[power]}`;
}

/* Making a format takes longer than using it; lists have hundreds of amounts. */
const formats = new Map<string, Intl.NumberFormat>();

export function number(value: number, language: string, digits = 1): string {
  const key = `${language} ${digits}`;
  const format =
    formats.get(key) ?? new Intl.NumberFormat(language, { maximumFractionDigits: digits });
  formats.set(key, format);
  return format.format(value);
}

/** Counted among the limits beside the slots, though no node has any. */
export const SESSIONS = 'sessions';

/** The slots that every node has, in the order in which people think of them. */
const FIRST = ['cpu', 'mem'];

export function sortSlots(slots: string[]): string[] {
  const rank = (slot: string): number => {
    const index = FIRST.indexOf(slot);
    return index < 0 ? FIRST.length : index;
  };
  return [...slots].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

/** `cuda.device:1g.10gb-mig` → `NVIDIA 1g.10gb`, for accelerators nobody has translated. */
export function acceleratorName(slot: string): string {
  const [family = slot] = slot.split('.');
  const known: Record<string, string> = { cuda: 'NVIDIA', rocm: 'AMD', fake: 'Fake' };
  const vendor = known[family] ?? family;
  const detail = slot.split(':')[1]?.replace(/-mig$/, '');
  return detail ? `${vendor} ${detail}` : vendor;
}

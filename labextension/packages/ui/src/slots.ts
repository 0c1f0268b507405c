/** How a reader sees one resource: its name, and its amount with a unit. */
import type { TFunction } from 'i18next';
import { acceleratorName, parseAmount, SESSIONS, showAmount, sortSlots } from './amounts';

export function slotTitle(slot: string, t: TFunction): string {
  if (slot === 'cpu' || slot === 'mem' || slot === SESSIONS) {
    return t(`slot.${slot}`);
  }
  const kind = slot.endsWith('.shares') ? 'shares' : 'device';
  return t(`slot.${kind}`, { vendor: acceleratorName(slot) });
}

/** `2 CPU`, `4 GiB`, `1 NVIDIA GPU`, from the amounts the API gives. */
export function listSlots(
  slots: Record<string, string>,
  t: TFunction,
  language: string
): string[] {
  return sortSlots(Object.keys(slots)).map(slot => {
    const amount = parseAmount(slot, slots[slot] ?? '');
    const shown = amount === null ? (slots[slot] ?? '') : showAmount(slot, amount, language);
    return slot === 'mem' ? shown : `${shown} ${slotTitle(slot, t)}`;
  });
}

export function describeSlots(
  slots: Record<string, string>,
  t: TFunction,
  language: string
): string {
  return listSlots(slots, t, language).join(' · ');
}

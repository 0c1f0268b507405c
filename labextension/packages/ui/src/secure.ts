/** What browsers offer only to pages that come over TLS, and what stands in for it. */

const BYTES = 16;

/** Something that nothing else is called; browsers make UUIDs for secure pages alone. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

/** Put *text* on the clipboard; fails where the browser keeps it from this page. */
export async function copyText(text: string): Promise<void> {
  // Absent, whatever the types say, for a page that came in the clear.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (!clipboard) {
    throw new Error('this page came in the clear, and may not copy');
  }
  await clipboard.writeText(text);
}

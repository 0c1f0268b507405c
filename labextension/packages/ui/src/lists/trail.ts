/** The cursors one has come along: services know the next page, but not the one before. */

/** Which page of the trail is shown, from 1 on; null for an address that was pasted. */
export function pageNumber(trail: readonly string[], after: string): number | null {
  const at = ['', ...trail].indexOf(after);
  return at < 0 ? null : at + 1;
}

/** The cursor of the page before; the first page's, where nobody knows. */
export function pageBefore(trail: readonly string[], after: string): string {
  const pages = ['', ...trail];
  return pages[pages.indexOf(after) - 1] ?? '';
}

/** The trail once the page after `after` is shown, which begins after `next`. */
export function goOn(trail: readonly string[], after: string, next: string): string[] {
  const pages = ['', ...trail];
  const at = pages.indexOf(after);
  return at < 0 ? [after, next] : [...pages.slice(1, at + 1), next];
}

/** Loads something once it is wanted; what failed to load is wanted again. */
export function whenWanted(
  load: () => Promise<void>,
  failed: (again: () => void) => void
): () => void {
  let begun = false;
  const want = (): void => {
    if (!begun) {
      begun = true;
      load().catch(() => {
        begun = false;
        failed(want);
      });
    }
  };
  return want;
}

/** Milliseconds before files that did not come are asked for again. */
const PAUSES = [150, 600, 1500];

/**
 * Load a part of the page, again where it fails: a network that changes, such as of a
 * laptop that is carried elsewhere, fails everything that is under way.
 */
export async function patiently<T>(load: () => Promise<T>): Promise<T> {
  for (const pause of PAUSES) {
    try {
      return await load();
    } catch {
      await new Promise(resolve => setTimeout(resolve, pause));
    }
  }
  return load();
}

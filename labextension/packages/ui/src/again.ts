/** Asking again for the files that a page is made of. */

let times = 0;

/**
 * Try *retry* once; from then on load everything anew. Where a newer version has been
 * installed, the files of the old one are gone, however often they are asked for.
 */
export function again(retry: () => void): void {
  times += 1;
  if (times > 1) {
    window.location.reload();
  } else {
    retry();
  }
}

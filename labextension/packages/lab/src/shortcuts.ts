/** JupyterLab's shortcuts: within reach of who uses our pages, not of who types there. */

const FIELDS = [
  'input:not([type="checkbox"], [type="radio"], [type="file"])',
  'select',
  'textarea',
  '[contenteditable="true"]'
].join();

/** Keep JupyterLab from starting commands by what is typed into a field of *node*. */
export function spareTyping(node: HTMLElement): void {
  node.addEventListener('focusin', ({ target }) => {
    const types = target instanceof Element && target.matches(FIELDS);
    node.toggleAttribute('data-lm-suppress-shortcuts', types);
  });
}

// A button that was pressed stays busy until the answer is there: pressing it again does nothing twice.

/** @type {WeakSet<Element>} */
const busy = new WeakSet();

/**
 * Does something for an element, unless it is being done already.
 * @param {Element} element
 * @param {() => Promise<void>} does
 */
export async function once(element, does) {
  if (busy.has(element)) {
    return;
  }
  busy.add(element);
  element.setAttribute('aria-busy', 'true');
  try {
    await does();
  } finally {
    busy.delete(element);
    element.removeAttribute('aria-busy');
  }
}

// Making elements. What people typed is only ever set as text.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | boolean | number | ((event: any) => void)>} [attributes] `onclick` and its like are listeners
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children);
  return element;
}

/**
 * A name, fenced in so that its direction of writing disturbs nothing around it.
 * @param {string} text
 */
export function bdi(text) {
  return make('bdi', {}, text);
}

/**
 * The element that the page has, or an error that says which is missing.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) {
    throw new Error(`the page has no #${id}`);
  }
  return element;
}

/**
 * Sets a text only where it differs, so that nothing is drawn or read out anew without need.
 * @param {Element | null} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element && element.textContent !== text) {
    element.textContent = text;
  }
}

// Making SVG elements. Text is only ever set as text.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...(SVGElement | string)} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === 'number' ? String(Math.round(value * 100) / 100) : value);
  }
  element.append(...children);
  return element;
}

/**
 * The stripes of what went wrong: seen without colour, too.
 * @param {string} id
 */
export function stripes(id) {
  const pattern = svg('pattern', { id, width: 8, height: 8, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' });
  pattern.append(svg('rect', { width: 8, height: 8, class: 'stripe-ground' }), svg('rect', { width: 3, height: 8, class: 'stripe' }));
  return svg('defs', {}, pattern);
}

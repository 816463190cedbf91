// Saving a diagram as a file: SVG that looks the same anywhere, or text.

import { svg } from './svg.js';

/** What the page's style sheet says and a file of its own must say itself. */
const LOOK = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-weight', 'font-style', 'font-family'];

const GAP = 12;

/**
 * One SVG of names and drawing, with its look in it.
 * @param {SVGElement} names
 * @param {SVGElement} chart
 * @param {string} sentence
 */
export function asFile(names, chart, sentence) {
  const [left, right] = [names, chart].map((part) => part.getBoundingClientRect());
  const [width, height] = [left.width + right.width + 2 * GAP, right.height + 2 * GAP];
  const whole = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` });
  whole.append(svg('title', {}, sentence));
  const ground = getComputedStyle(chart.closest('.panel') ?? document.body).backgroundColor;
  whole.append(svg('rect', { width, height, fill: ground }));
  for (const [part, x] of /** @type {[SVGElement, number][]} */ ([[names, GAP], [chart, GAP + left.width]])) {
    const group = svg('g', { transform: `translate(${x} ${GAP})` });
    group.append(...[...part.children].map((child) => withLook(/** @type {SVGElement} */ (child))));
    whole.append(group);
  }
  return new XMLSerializer().serializeToString(whole);
}

/** @param {SVGElement} element */
function withLook(element) {
  const copy = /** @type {SVGElement} */ (element.cloneNode(false));
  const style = getComputedStyle(element);
  for (const property of LOOK) {
    const value = style.getPropertyValue(property);
    if (value) {
      copy.setAttribute(property, value.replaceAll('"', "'"));
    }
  }
  for (const name of ['class', 'tabindex', 'data-at']) {
    copy.removeAttribute(name);
  }
  for (const child of element.childNodes) {
    copy.append(child instanceof SVGElement ? withLook(child) : child.cloneNode(true));
  }
  return copy;
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser needs the address until it has begun to save.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

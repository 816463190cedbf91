// A plan as SVG: the names of the lanes, which stay in sight, and the drawing itself, which may be wider than the page.

import { layout } from './layout.js';
import { textWidth, ticks } from './scale.js';
import { stripes, svg } from './svg.js';

/**
 * @typedef {import('./plan.js').Plan} Plan
 * @typedef {import('./plan.js').Bar} Bar
 * @typedef {import('./plan.js').Mark} Mark
 * @typedef {import('./plan.js').Arrow} Arrow
 * @typedef {import('./layout.js').Layout} Layout
 * @typedef {import('./layout.js').Placed} Placed
 * @typedef {{names: SVGElement, chart: SVGElement, x: (ms: number) => number}} Drawing `x` is in pixels of the page
 */

const BAR_HEIGHT = { overlap: 38, section: 26, wait: 14, work: 16, pause: 22, write: 18, lease: 24 };
const LEAST_WIDTH = 2;
/** What stands behind what. */
const ORDER = ['overlap', 'section', 'wait', 'lease', 'work', 'write', 'pause'];

/**
 * @param {Plan} plan
 * @param {{width: number, gutter: number, enlarged?: number}} size in pixels of the drawing, and how much larger it is seen
 * @returns {Drawing}
 */
export function draw(plan, { width, gutter, enlarged = 1 }) {
  const placed = layout(plan, width);
  const chart = svg('svg', { width: width * enlarged, height: placed.height * enlarged, viewBox: `0 0 ${width} ${placed.height}`, class: 'chart', role: 'group' });
  chart.setAttribute('aria-label', 'Sequence diagram; the arrow keys walk through its steps in the order of time');
  chart.append(stripes('wrong-stripes'), grid(plan, placed), ...[...placed.lanes.values()].map((lane) => line(lane, width)));
  const bars = [...plan.bars].sort((a, b) => ORDER.indexOf(a.shape) - ORDER.indexOf(b.shape));
  chart.append(...bars.map((bar) => drawBar(bar, placed)));
  chart.append(svg('g', { class: 'arrows', 'aria-hidden': 'true' }, ...plan.arrows.map((arrow) => drawArrow(arrow, placed)).filter((one) => one !== null)));
  chart.append(...plan.marks.map((mark) => drawMark(mark, placed)));
  return { names: names(placed, gutter, enlarged), chart, x: (ms) => placed.x(ms) * enlarged };
}

/** @param {Layout} placed @param {number} gutter @param {number} enlarged */
function names(placed, gutter, enlarged) {
  const element = svg('svg', { width: gutter * enlarged, height: placed.height * enlarged, viewBox: `0 0 ${gutter} ${placed.height}`, class: 'names', 'aria-hidden': 'true' });
  for (const { lane, middle } of placed.lanes.values()) {
    element.append(
      svg('text', { x: 0, y: middle - 2, class: 'lane-title' }, shortened(lane.title, gutter - 8, 13)),
      svg('text', { x: 0, y: middle + 13, class: 'lane-sub' }, shortened(lane.sub, gutter - 8, 11.5)),
    );
  }
  return element;
}

/** @param {string} text @param {number} width @param {number} size */
function shortened(text, width, size) {
  if (textWidth(text, size) <= width) {
    return text;
  }
  let short = [...text];
  while (short.length > 1 && textWidth(`${short.join('')}…`, size) > width) {
    short = short.slice(0, -1);
  }
  return `${short.join('')}…`;
}

/** @param {Plan} plan @param {Layout} placed */
function grid(plan, placed) {
  const group = svg('g', { class: 'axis', 'aria-hidden': 'true' });
  for (const { at, label } of ticks(plan.length, placed.width)) {
    const x = placed.x(at);
    const anchor = x < 20 ? 'start' : x > placed.width - 24 ? 'end' : 'middle';
    group.append(svg('line', { x1: x, x2: x, y1: 0, y2: placed.axis, class: 'grid' }));
    group.append(svg('text', { x: Math.max(2, Math.min(x, placed.width - 2)), y: placed.axis + 15, 'text-anchor': anchor, class: 'tick' }, label));
  }
  return group;
}

/** @param {Placed} placed @param {number} width */
function line({ lane, middle }, width) {
  const group = svg('g', { 'aria-hidden': 'true' }, svg('line', { x1: 0, x2: width, y1: middle, y2: middle, class: `lane ${lane.kind}` }));
  if (lane.note) {
    const wide = textWidth(lane.note, 11) + 16;
    group.append(svg('rect', { x: 10, y: middle - 12, width: wide, height: 24, rx: 4, class: 'note-ground' }), svg('text', { x: 18, y: middle + 4, class: 'note-text' }, lane.note));
  }
  return group;
}

/**
 * What can be pointed at, reached by keyboard and heard.
 * @param {{detail: string, tone: string, shape: string}} thing
 * @param {number} at
 * @param {...SVGElement} shapes
 */
function item({ detail, tone, shape }, at, ...shapes) {
  return svg('g', { class: `item ${shape} tone-${tone}`, role: 'img', 'aria-label': detail, tabindex: -1, 'data-at': at }, ...shapes);
}

/** @param {Bar} bar @param {Layout} placed */
function drawBar(bar, placed) {
  const lane = placed.lanes.get(bar.lane);
  const middle = lane?.middle ?? 0;
  const height = BAR_HEIGHT[bar.shape];
  const x = placed.x(bar.from);
  const width = Math.max(LEAST_WIDTH, placed.x(bar.to) - x);
  const shapes = [svg('rect', { x, y: middle - height / 2, width, height, rx: Math.min(4, width / 2), class: 'bar' })];
  const label = fitting(bar.label, width);
  if (label) {
    shapes.push(svg('text', { x: x + 6, y: middle + 4, class: 'bar-label' }, label));
  }
  return item(bar, bar.from, ...shapes);
}

/** @param {string} label @param {number} width */
function fitting(label, width) {
  if (!label || width < 24) {
    return '';
  }
  return textWidth(label) + 10 <= width ? label : textWidth(label) * 0.5 + 14 <= width ? shortened(label, width - 10, 12) : '';
}

/** @param {Arrow} arrow @param {Layout} placed */
function drawArrow(arrow, placed) {
  const [from, to] = [placed.lanes.get(arrow.from), placed.lanes.get(arrow.to)];
  if (!from || !to) {
    return null;
  }
  const x = placed.x(arrow.at);
  const down = to.middle > from.middle ? 1 : -1;
  const start = from.middle + down * 13;
  const end = to.middle - down * (to.lane.kind === 'row' ? 8 : 13);
  const head = `${x},${end} ${x - 4},${end - down * 8} ${x + 4},${end - down * 8}`;
  return svg('g', { class: `arrow ${arrow.shape} tone-${arrow.tone}` }, svg('line', { x1: x, x2: x, y1: start, y2: end - down * 6 }), svg('polygon', { points: head }));
}

/** @param {Mark} mark @param {Layout} placed */
function drawMark(mark, placed) {
  const lane = placed.lanes.get(mark.lane);
  const [x, y] = [placed.x(mark.at), lane?.middle ?? 0];
  const shapes = [svg('circle', { cx: x, cy: y, r: 11, class: 'reach' }), glyph(mark, x, y)];
  const label = placed.labels.get(mark);
  if (label) {
    shapes.push(svg('text', { x: label.x, y: label.y, 'text-anchor': label.anchor, class: 'mark-label' }, label.text));
  }
  return item(mark, mark.at, ...shapes);
}

/** @param {Mark} mark @param {number} x @param {number} y */
function glyph({ shape, tone }, x, y) {
  switch (shape) {
    case 'read':
      return svg('circle', { cx: x, cy: y, r: 4, class: 'glyph' });
    case 'wrote':
      return tone === 'wrong'
        ? svg('path', { d: `M${x} ${y - 10}L${x + 10} ${y}L${x} ${y + 10}L${x - 10} ${y}Z`, class: 'glyph' })
        : svg('circle', { cx: x, cy: y, r: 7, class: 'glyph' });
    case 'committed':
      return svg('path', { d: `M${x - 5} ${y}l4 5l7 -10`, class: 'glyph' });
    case 'lost':
      return svg('line', { x1: x, x2: x, y1: y - 19, y2: y + 19, class: 'glyph' });
    case 'anew':
      return svg('path', { d: `M${x - 6} ${y + 5}L${x} ${y - 6}L${x + 6} ${y + 5}Z`, class: 'glyph' });
    default:
      return svg('path', { d: `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x + 6} ${y - 6}L${x - 6} ${y + 6}`, class: 'glyph' });
  }
}

// Where everything of a plan stands, in pixels. Pure.

import { textWidth } from './scale.js';

/**
 * @typedef {import('./plan.js').Plan} Plan
 * @typedef {import('./plan.js').Lane} Lane
 * @typedef {import('./plan.js').Mark} Mark
 * @typedef {{lane: Lane, top: number, middle: number, height: number}} Placed
 * @typedef {{x: number, y: number, anchor: 'start' | 'end', text: string}} Label
 * @typedef {{lanes: Map<string, Placed>, labels: Map<Mark, Label>, x: (ms: number) => number, width: number,
 *   height: number, axis: number}} Layout
 */

const HEIGHT = { attempt: 50, lock: 44, row: 40 };
const TIER = 16;
const LEFT = 14;
/** The last marks need room. */
const RIGHT = 40;
const AXIS = 26;
const BELOW_THE_LINE = 24;

/**
 * @param {Plan} plan
 * @param {number} width of the drawing, without the names of the lanes
 * @returns {Layout}
 */
export function layout(plan, width) {
  const inner = Math.max(1, width - LEFT - RIGHT);
  const x = (/** @type {number} */ ms) => LEFT + (ms / Math.max(plan.length, 0.001)) * inner;
  /** @type {Map<string, Placed>} */
  const lanes = new Map();
  /** @type {Map<Mark, Label>} */
  const labels = new Map();
  let top = 6;
  for (const lane of plan.lanes) {
    const marks = plan.marks.filter((mark) => mark.lane === lane.id && mark.label);
    const middle = top + HEIGHT[lane.kind] / 2;
    const tiers = placeLabels(marks, labels, x, middle + BELOW_THE_LINE, width);
    const height = HEIGHT[lane.kind] + tiers * TIER;
    lanes.set(lane.id, { lane, top, middle, height });
    top += height;
  }
  return { lanes, labels, x, width, height: top + AXIS, axis: top + 4 };
}

/**
 * Each label in the first tier where it covers no other, beside its mark where the drawing has room.
 * @param {Mark[]} marks @param {Map<Mark, Label>} labels @param {(ms: number) => number} x @param {number} y
 * @param {number} width
 * @returns {number} how many tiers
 */
function placeLabels(marks, labels, x, y, width) {
  /** @type {{from: number, to: number}[][]} */
  const tiers = [];
  for (const mark of [...marks].sort((a, b) => a.at - b.at)) {
    const wide = textWidth(mark.label) + 6;
    const at = x(mark.at);
    const { from, side } = place(mark, at, wide, width);
    const to = from + wide;
    let tier = tiers.findIndex((taken) => taken.every((other) => to <= other.from || from >= other.to));
    if (tier < 0) {
      tier = tiers.push([]) - 1;
    }
    tiers[tier].push({ from, to });
    labels.set(mark, { x: side === 'right' ? from : to, y: y + tier * TIER, anchor: side === 'right' ? 'start' : 'end', text: mark.label });
  }
  return tiers.length;
}

/**
 * On which side of its mark a label stands, and where it begins. To the right, unless there is no room; a lease that was
 * lost is named to its left, since to the right the next holder's arrows come and go.
 * @param {Mark} mark @param {number} at @param {number} wide @param {number} width
 * @returns {{from: number, side: 'left' | 'right'}}
 */
function place({ shape }, at, wide, width) {
  if (shape === 'lost' && at - 4 - wide >= 0) {
    return { from: at - 4 - wide, side: 'left' };
  }
  return at - 4 + wide <= width ? { from: at - 4, side: 'right' } : { from: Math.max(0, at + 4 - wide), side: 'left' };
}

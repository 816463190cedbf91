// The axis of time. Pure.

/** Ticks nearer to each other than this cannot be read. */
const LEAST_GAP = 72;

/**
 * The steps between ticks that people count in.
 * @param {number} length in milliseconds
 * @param {number} width in pixels
 */
export function ticks(length, width) {
  const most = Math.max(1, Math.floor(width / LEAST_GAP));
  const raw = Math.max(length, 0.001) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) ?? raw;
  const digits = Math.max(1, -Math.floor(Math.log10(step / 1000) + 1e-9));
  const list = [];
  for (let index = 0; index * step <= length * 1.0001; index += 1) {
    list.push({ at: index * step, label: `${((index * step) / 1000).toFixed(digits)} s` });
  }
  return list;
}

/**
 * How wide a text is drawn, well enough to tell whether it fits.
 * @param {string} text
 * @param {number} [size] of the letters, in pixels
 */
export function textWidth(text, size = 12) {
  let width = 0;
  for (const letter of text) {
    width += letter.codePointAt(0) > 0x2e80 ? 1 : /[ilj.,:;'|⁨⁩]/.test(letter) ? 0.34 : /[mwMW]/.test(letter) ? 0.9 : 0.6;
  }
  return width * size;
}

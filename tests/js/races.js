// Races that were run, as they are kept.

import { readFileSync } from 'node:fs';

/** @param {string} name @returns {import('../../static/diagram/story.js').Race} */
export function race(name) {
  return JSON.parse(readFileSync(new URL(`races/${name}.json`, import.meta.url), 'utf8'));
}

/** Without what fences names in. @param {string} text */
export function plain(text) {
  return text.replace(/[\u2068\u2069]/g, '');
}

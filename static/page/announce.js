// What a screen reader hears, politely and without chatter: what comes within a moment is one sentence, and only the
// last of each kind is said.

import { byId, setText } from './dom.js';

const A_MOMENT = 1200;

/** @type {Map<string, string>} */
const waiting = new Map();
let timer = 0;

/**
 * @param {string} kind what it is about; a newer one of the same kind takes its place
 * @param {string} text
 */
export function announce(kind, text) {
  waiting.delete(kind);
  waiting.set(kind, text);
  timer ||= window.setTimeout(say, A_MOMENT);
}

function say() {
  timer = 0;
  setText(byId('said'), [...waiting.values()].join(' '));
  waiting.clear();
}

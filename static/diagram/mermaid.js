// A race as text for Mermaid's sequenceDiagram. Pure.

import { shortRowName, tokenNames } from './words.js';

/**
 * @typedef {import('./story.js').Story} Story
 * @typedef {import('./story.js').Attempt} Attempt
 */

/**
 * @param {Story} story
 * @param {string} [sentence] what happened, as a note over all
 * @returns {string}
 */
export function mermaid(story, sentence) {
  const token = tokenNames(story.attempts.flatMap(({ events }) => events.map((event) => event.token)));
  const lines = ['sequenceDiagram', '  autonumber'];
  for (const attempt of story.attempts) {
    lines.push(`  participant P${attempt.index} as ${plain(`${attempt.name} (replica ${attempt.replica})`)}`);
  }
  lines.push(`  participant L as ${plain(story.lock === null ? 'Lock (off)' : `Lock (${story.lock})`)}`);
  story.rows.forEach((row, index) => lines.push(`  participant R${index} as ${plain(row.replace('/', ' '))}`));
  if (sentence) {
    lines.push(`  Note over P0,${story.rows.length > 0 ? `R${story.rows.length - 1}` : 'L'}: ${plain(sentence)}`);
  }
  const steps = story.attempts.flatMap((attempt) => attempt.events.map((event) => ({ attempt, event })));
  steps.sort((a, b) => a.event.at - b.event.at);
  for (const { attempt, event } of steps) {
    lines.push(...line(story, attempt, event, token));
  }
  return `${lines.join('\n')}\n`;
}

/** @param {Story} story @param {Attempt} attempt @param {import('./story.js').Event} event @param {(token: number) => string} token */
function line(story, attempt, event, token) {
  const me = `P${attempt.index}`;
  const at = `${(event.at / 1000).toFixed(3)} s`;
  const row = story.rows.indexOf(event.rows[0]);
  const mine = event.token === null ? '' : `, token ${token(event.token)}`;
  const what = event.rows.map(shortRowName).join(', ');
  const text = plain(`${at} ${event.detail}${mine}`);
  switch (event.kind) {
    case 'asked':
      return [`  ${me}->>L: ${text}${what ? plain(` for ${what}`) : ''}`];
    case 'granted':
      return [`  L-->>${me}: ${plain(`${at} granted ${what}${mine}`)}`];
    case 'released':
      return [`  ${me}->>L: ${text}`];
    case 'read':
      return row < 0 ? [] : [`  R${row}-->>${me}: ${text}`];
    case 'wrote':
      return row < 0 ? [] : [`  ${me}->>R${row}: ${text}`];
    case 'rejected':
      return row < 0 ? [`  Note over ${me}: ${text}`] : [`  ${me}-xR${row}: ${text}`];
    default:
      return [`  Note over ${me}: ${text}`];
  }
}

/**
 * Mermaid ends a statement at a semicolon or a line's end and reads # as the start of an entity.
 * @param {string} text
 */
function plain(text) {
  return text.replace(/[\u2066-\u2069\u202a-\u202e]/g, '').replace(/[#;<>{}%]/g, (mark) => `#${mark.codePointAt(0)};`).replace(/[\r\n\u2028\u2029]+/g, ' ');
}

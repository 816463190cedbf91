// Which attempts of a big race are drawn: all that met at the same rows, so that each that is drawn can be understood.
// Pure.

/**
 * @typedef {import('./story.js').Race} Race
 * @typedef {import('./story.js').RaceRecord} RaceRecord
 * @typedef {{row: string, records: RaceRecord[], committed: number}} Meeting
 */

/** More attempts than this are not drawn at once. */
export const MOST_DRAWN = 10;

/**
 * Attempts by the row at which they met, those first at which most were committed.
 * @param {Race} race
 * @returns {Meeting[]}
 */
export function meetings(race) {
  /** @type {Map<string, RaceRecord[]>} */
  const byRow = new Map();
  for (const record of race.records) {
    const row = firstRow(record);
    byRow.set(row, [...(byRow.get(row) ?? []), record]);
  }
  return [...byRow]
    .map(([row, records]) => ({ row, records, committed: records.filter(isCommitted).length }))
    .sort((a, b) => b.committed - a.committed || a.row.localeCompare(b.row, 'en', { numeric: true }));
}

/**
 * The records to draw: all, or those of one meeting (the first, unless another is asked for) and of as many after it
 * as can be read.
 * @param {Race} race
 * @param {string} [row]
 * @returns {RaceRecord[]}
 */
export function mostTelling(race, row) {
  if (race.records.length <= MOST_DRAWN) {
    return race.records;
  }
  const all = meetings(race);
  if (row) {
    return (all.find((meeting) => meeting.row === row)?.records ?? []).slice(0, MOST_DRAWN);
  }
  /** @type {RaceRecord[]} */
  const chosen = [];
  for (const { records } of all) {
    if (chosen.length > 0 && chosen.length + records.length > MOST_DRAWN) {
      break;
    }
    chosen.push(...records.slice(0, MOST_DRAWN));
  }
  return chosen;
}

/** @param {RaceRecord} record */
function firstRow({ steps }) {
  const key = steps.find(({ key }) => key)?.key ?? '';
  return key.split(', ')[0].replace(/^[a-z0-9-]+\/(?=(seat|wallet)\/)/, '');
}

/** @param {RaceRecord} record */
function isCommitted({ steps }) {
  return steps.some(({ kind }) => kind === 'committed');
}

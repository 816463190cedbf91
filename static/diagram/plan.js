// From the story of a race to what is drawn: lanes, bars on them, arrows between them. In milliseconds and lanes; no
// pixels yet. Pure.

import { WHOLE_FILE } from './story.js';
import { isolate, rowName, seconds, shortRowName, tokenNames } from './words.js';

/**
 * @typedef {import('./story.js').Story} Story
 * @typedef {import('./story.js').Attempt} Attempt
 * @typedef {import('./story.js').Event} Event
 *
 * @typedef {'calm' | 'right' | 'wrong' | 'off' | 'quiet'} Tone
 * @typedef {{id: string, kind: 'attempt' | 'lock' | 'row', title: string, sub: string, note?: string}} Lane
 * @typedef {{lane: string, from: number, to: number, shape: 'wait' | 'section' | 'work' | 'pause' | 'write' | 'lease' |
 *   'overlap', label: string, detail: string, tone: Tone}} Bar
 * @typedef {{lane: string, at: number, shape: 'read' | 'wrote' | 'committed' | 'refused' | 'lost' | 'anew', label: string, sub?: string,
 *   detail: string, tone: Tone}} Mark
 * @typedef {{at: number, from: string, to: string, shape: 'ask' | 'grant' | 'release' | 'read' | 'write' | 'refusal',
 *   tone: Tone}} Arrow
 * @typedef {{lanes: Lane[], bars: Bar[], marks: Mark[], arrows: Arrow[], length: number}} Plan
 */

/**
 * @param {Story} story
 * @returns {Plan}
 */
export function plan(story) {
  const token = tokenNames(story.attempts.flatMap(({ events }) => events.map((event) => event.token)));
  /** @type {Plan} */
  const drawn = { lanes: lanes(story), bars: [], marks: [], arrows: [], length: story.length };
  for (const attempt of story.attempts) {
    ownBars(drawn, attempt);
    leaseBars(drawn, story, attempt, token);
    for (const event of attempt.events) {
      step(drawn, story, attempt, event, token);
    }
  }
  overlapBars(drawn, story);
  return drawn;
}

/** @param {Attempt} attempt */
const laneOf = (attempt) => `attempt ${attempt.index}`;

/** @param {Story} story @param {string} row */
function lockLaneOf({ attempts }, row, attempt) {
  const alone = attempts.every(({ leases }) => leases.length === 0);
  return alone ? 'lock' : `lock ${row}${attempt ?? ''}`;
}

/** @param {Attempt} attempt */
const name = (attempt) => isolate(attempt.name);

/**
 * The attempts of the first replica, the locks, the other attempts, the rows: so the arrows to the lock are short.
 * @param {Story} story
 * @returns {Lane[]}
 */
function lanes(story) {
  const first = story.attempts[0]?.replica;
  /** @param {Attempt} attempt @returns {Lane} */
  const own = (attempt) => ({
    id: laneOf(attempt),
    kind: 'attempt',
    title: name(attempt),
    sub: `replica ${isolate(attempt.replica)}`,
  });
  return [
    ...story.attempts.filter(({ replica }) => replica === first).map(own),
    ...lockLanes(story),
    ...story.attempts.filter(({ replica }) => replica !== first).map(own),
    ...story.rows.map((row) => /** @type {Lane} */ ({ id: row, kind: 'row', title: rowName(row), sub: 'database' })),
  ];
}

/** @param {Story} story @returns {Lane[]} */
function lockLanes(story) {
  const keys = story.lock === null ? [] : lockKeys(story);
  if (keys.length === 0) {
    const note = story.lock === null ? 'locking is off: nobody asks for a lock' : 'no lock was granted';
    return [{ id: 'lock', kind: 'lock', title: 'Lock', sub: story.lock ?? 'off', note }];
  }
  return keys.map(({ row, replica }) => ({
    id: `lock ${row}${replica}`,
    kind: 'lock',
    title: `Lock · ${story.lock}`,
    sub: (row === WHOLE_FILE ? row : isolate(shortRowName(row))) + (replica ? ` on ${isolate(replica)}` : ''),
  }));
}

/**
 * One lane for each key; a mutex is another one on each replica.
 * @param {Story} story
 */
function lockKeys(story) {
  const keys = new Map();
  for (const attempt of story.attempts) {
    for (const { row } of attempt.leases) {
      const replica = ownOf(story, attempt);
      keys.set(row + replica, { row, replica });
    }
  }
  return [...keys.values()].sort((a, b) => (a.row + a.replica).localeCompare(b.row + b.replica, 'en', { numeric: true }));
}

/** @param {Story} story @param {Attempt} attempt */
function ownOf(story, attempt) {
  return story.lock === 'mutex' ? attempt.replica : '';
}

/** @param {Plan} drawn @param {Attempt} attempt */
function ownBars(drawn, attempt) {
  const lane = laneOf(attempt);
  for (const wait of attempt.waits) {
    const rows = wait.rows.map(rowName).join(' and ') || 'the lock';
    const refused = wait.ended === 'refused';
    drawn.bars.push({
      lane, from: wait.from, to: wait.to, shape: 'wait', tone: refused ? 'off' : 'quiet',
      label: refused ? 'waits, gives up' : 'waits',
      detail: `${name(attempt)} waits ${seconds(wait.to - wait.from)} for the lock of ${rows}${refused ? ' and does not get it' : ''}`,
    });
  }
  const own = attempt.sections;
  if (own.length > 0) {
    const from = Math.min(...own.map((section) => section.from));
    const to = Math.max(...own.map((section) => section.to));
    drawn.bars.push({
      lane, from, to, shape: 'section', label: '', tone: 'calm',
      detail: `The critical section of ${name(attempt)}: from ${seconds(from)} to ${seconds(to)} nobody else should decide about the same`,
    });
  }
  for (const work of attempt.work) {
    drawn.bars.push({
      lane, from: work.from, to: work.to, shape: 'work', label: 'thinks', tone: 'quiet',
      detail: `${name(attempt)} works for ${seconds(work.to - work.from)} between read and write`,
    });
  }
  for (const pause of attempt.pauses) {
    const how = pause.freeze ? ', its renewal with it, as in a long garbage collection' : '';
    drawn.bars.push({
      lane, from: pause.from, to: pause.to, shape: 'pause', label: 'paused', tone: 'off',
      detail: `${name(attempt)} is paused for ${seconds(pause.to - pause.from)}${how}`,
    });
  }
}

/** @param {Plan} drawn @param {Story} story @param {Attempt} attempt @param {(token: number) => string} token */
function leaseBars(drawn, story, attempt, token) {
  for (const lease of attempt.leases) {
    const lane = lockLaneOf(story, lease.row, ownOf(story, attempt));
    const mine = lease.token === null ? '' : ` · token ${token(lease.token)}`;
    const over = lease.end === 'over';
    const ended = { released: 'and was given back', over: 'and ran out', open: '' }[lease.end];
    drawn.bars.push({
      lane, from: lease.from, to: lease.to, shape: 'lease', tone: 'right',
      label: `${name(attempt)}${mine}`,
      detail: `${name(attempt)} has the lock of ${rowName(lease.row)}${lease.token === null ? '' : `, token ${lease.token}`}, from ${seconds(lease.from)} to ${seconds(lease.to)} ${ended}`,
    });
    if (over) {
      drawn.marks.push({
        lane, at: lease.to, shape: 'lost', tone: 'wrong', label: `lease over, ${name(attempt)} does not know`,
        detail: `The lease of ${name(attempt)} is over at ${seconds(lease.to)}; the lock may be granted to somebody else`,
      });
    }
  }
}

/** @param {Plan} drawn @param {Story} story @param {Attempt} attempt @param {Event} event @param {(token: number) => string} token */
function step(drawn, story, attempt, event, token) {
  const lane = laneOf(attempt);
  const { at } = event;
  const locks = event.rows.map((row) => lockLaneOf(story, row, ownOf(story, attempt))).filter((id) => drawn.lanes.some((one) => one.id === id));
  const whole = drawn.lanes.find(({ id }) => id.startsWith(`lock ${WHOLE_FILE}`))?.id;
  const lock = locks[0] ?? (event.kind === 'granted' || event.kind === 'asked' ? whole : undefined);
  switch (event.kind) {
    case 'asked':
      if (lock) drawn.arrows.push({ at, from: lane, to: lock, shape: 'ask', tone: 'quiet' });
      return;
    case 'granted':
      if (lock) drawn.arrows.push({ at, from: lock, to: lane, shape: 'grant', tone: 'right' });
      return;
    case 'released':
      if (lock) drawn.arrows.push({ at, from: lane, to: lock, shape: 'release', tone: 'quiet' });
      return;
    case 'read':
      return read(drawn, attempt, event);
    case 'wrote':
      return wrote(drawn, story, attempt, event, token);
    case 'committed':
      drawn.marks.push({ lane, at, shape: 'committed', label: '', tone: 'right', detail: `${name(attempt)} commits at ${seconds(at)}` });
      return;
    case 'rejected':
      return rejected(drawn, attempt, event);
    case 'anew':
      drawn.marks.push({ lane, at, shape: 'anew', label: 'begins anew', tone: 'off', detail: `${name(attempt)} begins anew at ${seconds(at)}: ${event.detail}` });
  }
}

/** @param {Plan} drawn @param {Attempt} attempt @param {Event} event */
function read(drawn, attempt, { at, rows, detail }) {
  const [row] = rows;
  if (!row) return;
  drawn.arrows.push({ at, from: row, to: laneOf(attempt), shape: 'read', tone: 'quiet' });
  drawn.marks.push({ lane: row, at, shape: 'read', label: '', tone: 'quiet', detail: `${name(attempt)} reads ${rowName(row)} at ${seconds(at)} and ${detail}` });
}

/** @param {Plan} drawn @param {Story} story @param {Attempt} attempt @param {Event} event @param {(token: number) => string} token */
function wrote(drawn, story, attempt, { at, rows, detail, token: mine }, token) {
  const [row] = rows;
  if (!row) return;
  const committed = attempt.committed !== null;
  const wrong = committed && isAgain(story, attempt, row, at);
  const isSeat = row.startsWith('seat/');
  const verb = isSeat ? (wrong ? 'sold again to' : 'sold to') : wrong ? 'overwritten by' : 'written by';
  const withToken = mine === null ? '' : ` · token ${token(mine)}`;
  drawn.arrows.push({ at, from: laneOf(attempt), to: row, shape: 'write', tone: wrong ? 'wrong' : 'right' });
  drawn.marks.push({
    lane: row, at, shape: 'wrote', tone: committed ? (wrong ? 'wrong' : 'right') : 'off',
    label: `${committed ? verb : 'not committed:'} ${name(attempt)}${withToken}`,
    detail: `${name(attempt)} writes ${rowName(row)} at ${seconds(at)}${mine === null ? '' : ` with token ${mine}`}: ${detail}${wrong ? '; nothing refused it' : ''}`,
  });
}

/**
 * Whether a committed write was one too many: of a seat that was sold, or over a balance that was not read.
 * @param {Story} story @param {Attempt} attempt @param {string} row @param {number} at
 */
function isAgain({ attempts, violations }, attempt, row, at) {
  const mine = attempt.writes.find((write) => write.row === row);
  return (
    violations.some((violation) => violation.row === row) &&
    attempts.some(
      (other) =>
        other !== attempt &&
        other.committed !== null &&
        other.writes.some((write) => write.row === row && write.at < at && (row.startsWith('seat/') || write.version === mine?.version)),
    )
  );
}

/** @param {Plan} drawn @param {Attempt} attempt @param {Event} event */
function rejected(drawn, attempt, { at, rows, detail }) {
  const lane = laneOf(attempt);
  const guard = { 'stale-token': 'refused by the fence', 'row-changed': 'refused by compare', 'switches-changed': 'refused: switches changed' }[attempt.outcome ?? ''];
  const said = `${name(attempt)} is refused at ${seconds(at)}: ${detail}`;
  const [row] = rows;
  if (guard && row) {
    drawn.arrows.push({ at, from: lane, to: row, shape: 'refusal', tone: 'off' });
    drawn.marks.push({ lane: row, at, shape: 'refused', tone: 'off', label: `${name(attempt)} ${guard}`, detail: said });
    return;
  }
  const word = { 'seat-taken': 'taken', 'insufficient-funds': 'too little', 'lease-lost': 'lease is over', 'lock-timeout': 'gives up', deadlock: 'deadlock' };
  drawn.marks.push({ lane, at, shape: 'refused', tone: 'off', label: word[attempt.outcome ?? ''] ?? 'refused', detail: said });
}

/**
 * In a crowd each overlaps with many: one bar for each stretch of time, naming all who were in it.
 * @param {Plan} drawn @param {Story} story
 */
function overlapBars(drawn, story) {
  for (const attempt of story.attempts) {
    const mine = story.overlaps.filter(({ attempts }) => attempts.includes(attempt.index));
    for (const { from, to, row, others } of stretches(mine, attempt.index)) {
      const names = [...others].map((index) => name(story.attempts[index]));
      drawn.bars.push({
        lane: laneOf(attempt), from, to, shape: 'overlap', tone: 'wrong', label: '',
        detail: `${name(attempt)} and ${names.join(', ')} are in the critical section of ${rowName(row)} at once, from ${seconds(from)} to ${seconds(to)}`,
      });
    }
  }
}

/** @param {import('./story.js').Overlap[]} overlaps @param {number} me */
function stretches(overlaps, me) {
  /** @type {{from: number, to: number, row: string, others: Set<number>}[]} */
  const joined = [];
  for (const { from, to, row, attempts } of [...overlaps].sort((a, b) => a.from - b.from)) {
    const other = attempts[0] === me ? attempts[1] : attempts[0];
    const last = joined.at(-1);
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.others.add(other);
    } else {
      joined.push({ from, to, row, others: new Set([other]) });
    }
  }
  return joined;
}

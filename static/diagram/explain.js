// What happened in a race and why, in one sentence with the times and tokens that caused it. Pure.

import { count, isolate, rowName, seconds, tokenNames } from './words.js';

/**
 * @typedef {import('./story.js').Story} Story
 * @typedef {import('./story.js').Attempt} Attempt
 * @typedef {import('./story.js').Violation} Violation
 * @typedef {{story: Story, token: (token: number) => string}} Known
 */

/**
 * @param {Story} story
 * @returns {string} nothing, where the steps tell no cause
 */
export function explain(story) {
  const tokens = story.attempts.flatMap(({ events }) => events.map(({ token }) => token));
  const known = { story, token: tokenNames(tokens) };
  const wrong = story.violations[0];
  if (wrong) {
    return wentWrong(known, wrong) + others(story);
  }
  for (const tell of [refusedByFence, refusedByCompare, stoppedInTime, waitedInACircle, oneAfterTheOther]) {
    const told = tell(known);
    if (told) {
      return told;
    }
  }
  return '';
}

/** @param {Attempt} attempt */
const name = (attempt) => isolate(attempt.name);

/** @param {Attempt} attempt @param {string} row */
const readOf = (attempt, row) => attempt.events.find(({ kind, rows }) => kind === 'read' && rows[0] === row);

/** @param {Attempt} attempt @param {string} row */
const writeOf = (attempt, row) => attempt.writes.find((write) => write.row === row);

/** @param {Attempt} attempt @param {string} row */
const leaseOf = (attempt, row) => attempt.leases.find((lease) => lease.row === row);

/** @param {string} detail as a read tells it: `saw it free`, `saw 100.00 in it` */
function seen(detail) {
  if (detail === 'saw it free') {
    return 'free';
  }
  const balance = /^saw (.+) in it$/.exec(detail);
  return balance ? balance[1] : detail.replace(/^saw it /, '');
}

/** @param {Known} known @param {Violation} violation */
function wentWrong(known, { row, kind, first, second }) {
  const [one, other] = [known.story.attempts[first], known.story.attempts[second]];
  const stale = staleWriter(one, other, row);
  if (stale) {
    const late = writeOf(stale.late, row);
    const end = `${name(stale.late)} wrote${withToken(known, stale.late, row)} at ${seconds(late?.at ?? 0)}; nothing checked it.`;
    return `${leaseEnded(known, stale.late, stale.next, row)} ${end}`;
  }
  return `${bothRead(one, other, row)} ${wrote(one, other, row, kind)} ${nothingBetween(known, one, other, row)}`;
}

/**
 * The one of two whose lease was over when it wrote, and the one who got the lock after it.
 * @param {Attempt} one @param {Attempt} other @param {string} row
 */
function staleWriter(one, other, row) {
  for (const [late, next] of [[one, other], [other, one]]) {
    const lease = leaseOf(late, row);
    if (lease?.end === 'over' && leaseOf(next, row)) {
      return { late, next };
    }
  }
  return null;
}

/** @param {Known} known @param {Attempt} attempt @param {string} row */
function withToken({ token }, attempt, row) {
  const mine = leaseOf(attempt, row)?.token;
  return mine == null ? '' : ` with token ${token(mine)}`;
}

/** @param {Known} known @param {Attempt} late @param {Attempt} next @param {string} row */
function leaseEnded(known, late, next, row) {
  const lease = leaseOf(late, row);
  const got = leaseOf(next, row);
  const mine = lease?.token == null ? '' : ` (token ${known.token(lease.token)})`;
  const theirs = got?.token == null ? 'the lock' : `token ${known.token(got.token)}`;
  const paused = late.pauses.length > 0 ? ` while ${name(late)} was paused` : '';
  const done = next.committed === null ? '' : ` and ${did(row)} at ${seconds(next.committed)}`;
  return `The lease of ${name(late)}${mine} ended at ${seconds(lease?.to ?? 0)}${paused}; ${name(next)} got ${theirs}${done};`;
}

/** @param {string} row */
function did(row) {
  return row.startsWith('seat/') ? 'booked' : 'committed';
}

/** @param {Attempt} one @param {Attempt} other @param {string} row */
function bothRead(one, other, row) {
  const first = readOf(one, row)?.at ?? 0;
  if ((readOf(other, row)?.at ?? 0) < first) {
    return bothRead(other, one, row);
  }
  const [a, b] = [readOf(one, row), readOf(other, row)];
  const what = a && b && a.detail === b.detail ? ` as ${seen(a.detail)}` : '';
  const times = [...new Set([a, b].map((read) => seconds(read?.at ?? 0)))].join(' and ');
  return `${name(one)} and ${name(other)} both read ${rowName(row)}${what}, at ${times}, before either had written;`;
}

/** @param {Attempt} one @param {Attempt} other @param {string} row @param {Violation['kind']} kind */
function wrote(one, other, row, kind) {
  const [a, b] = [writeOf(one, row), writeOf(other, row)];
  const over = kind === 'lost-update' ? `, over what the first had written` : '';
  return `${name(one)} wrote at ${seconds(a?.at ?? 0)}, ${name(other)} at ${seconds(b?.at ?? 0)}${over}.`;
}

/** @param {Known} known @param {Attempt} one @param {Attempt} other @param {string} row */
function nothingBetween({ story }, one, other, row) {
  const locked = leaseOf(one, row) && leaseOf(other, row);
  if (!locked) {
    return 'No lock was taken, so nothing kept them apart.';
  }
  if (story.lock === 'mutex' && one.replica !== other.replica) {
    return `Each held a mutex, but of its own replica, ${isolate(one.replica)} and ${isolate(other.replica)}: two locks, not one.`;
  }
  return 'Both were granted the lock.';
}

/** @param {Story} story */
function others({ violations }) {
  const more = violations.length - 1;
  if (more === 0) {
    return '';
  }
  const sold = violations[0].kind === 'sold-twice';
  return ` ${sold ? `${count(more, 'more seat')} went the same way.` : `${count(more, 'more update')} went the same way.`}`;
}

/** @param {Known} known @param {string} outcome */
function ending(known, outcome) {
  return known.story.attempts.find((attempt) => attempt.outcome === outcome);
}

/** @param {Attempt} attempt */
function refusal(attempt) {
  return attempt.events.findLast(({ kind }) => kind === 'rejected');
}

/** @param {Known} known */
function refusedByFence(known) {
  const late = ending(known, 'stale-token');
  const refused = late && refusal(late);
  const row = refused?.rows[0];
  const next = known.story.attempts.find((other) => row && other !== late && leaseOf(other, row));
  if (!late || !row || !next) {
    return '';
  }
  const seenToken = leaseOf(next, row)?.token;
  const because = seenToken == null ? '' : `, for the row had seen ${known.token(seenToken)}`;
  return `${leaseEnded(known, late, next, row)} the write of ${name(late)}${withToken(known, late, row)} at ${seconds(refused.at)} was refused by the fence${because}.`;
}

/** @param {Known} known */
function refusedByCompare(known) {
  const late = ending(known, 'row-changed');
  const refused = late && refusal(late);
  const row = refused?.rows[0];
  const first = known.story.attempts.find((other) => row && other !== late && writeOf(other, row));
  if (!late || !row || !first) {
    return '';
  }
  const at = seconds(writeOf(first, row)?.at ?? 0);
  return `${bothRead(first, late, row)} ${name(first)} wrote at ${at}; the write of ${name(late)} at ${seconds(refused.at)} was refused by compare, for the row had changed.`;
}

/** @param {Known} known */
function stoppedInTime(known) {
  const late = ending(known, 'lease-lost');
  const refused = late && refusal(late);
  if (!late || !refused) {
    return '';
  }
  return `${name(late)} looked at its lease before the write, at ${seconds(refused.at)}: it was over, so nothing was written.`;
}

/** @param {Known} known */
function waitedInACircle(known) {
  const attempts = known.story.attempts;
  const gaveUp = ending(known, 'lock-timeout') ?? ending(known, 'deadlock');
  const waited = gaveUp?.waits.find(({ ended }) => ended !== 'granted');
  const wanted = waited?.rows[0];
  const held = gaveUp?.leases[0]?.row;
  const other = attempts.find((one) => one !== gaveUp && wanted && leaseOf(one, wanted) && one.waits.some(({ rows }) => held && rows.includes(held)));
  if (!gaveUp || !waited || !wanted || !held || !other) {
    return gaveUp && waited
      ? `${name(gaveUp)} waited ${seconds(waited.to - waited.from)} for ${wanted ? rowName(wanted) : 'the lock'} and gave up.`
      : '';
  }
  return `${name(gaveUp)} held ${rowName(held)} and waited for ${rowName(wanted)}, ${name(other)} held ${rowName(wanted)} and waited for ${rowName(held)}: a circle, in which neither could go on until ${name(gaveUp)} gave up at ${seconds(waited.to)}.`;
}

/** @param {Known} known */
function oneAfterTheOther({ story }) {
  const waited = story.attempts
    .flatMap((attempt) => attempt.waits.map((wait) => ({ attempt, wait })))
    .filter(({ wait }) => wait.ended === 'granted')
    .sort((a, b) => b.wait.to - b.wait.from - (a.wait.to - a.wait.from));
  const last = waited[0];
  const row = last?.wait.rows.find((row) => readOf(last.attempt, row) && before(story, last.attempt, row));
  const holder = row && before(story, last.attempt, row);
  if (!last || !row || !holder) {
    return '';
  }
  const saw = readOf(last.attempt, row);
  const longest = story.attempts.length > 2 ? 'the longest of all, ' : '';
  const after = `${name(last.attempt)} waited ${seconds(last.wait.to - last.wait.from)}, ${longest}until ${name(holder)} had let go of ${rowName(row)}`;
  return `The lock let one in after the other: ${after}, then read it as ${saw ? seen(saw.detail).replace(/^sold: (.*)$/s, (_, buyer) => `sold to ${isolate(buyer)}`) : 'it was'}.`;
}

/**
 * Who held a row last before an attempt got it.
 * @param {Story} story @param {Attempt} attempt @param {string} row
 */
function before(story, attempt, row) {
  const mine = leaseOf(attempt, row)?.from ?? attempt.waits[0]?.to ?? 0;
  return story.attempts
    .filter((other) => other !== attempt && other.leases.some((lease) => (lease.row === row || lease.row.startsWith('the ')) && lease.to <= mine))
    .sort((a, b) => b.end - a.end)[0];
}


import assert from 'node:assert/strict';
import { test } from 'node:test';

import { tell } from '../../static/diagram/story.js';
import { race } from './races.js';

test('two sections that overlap are found, and only then', () => {
  for (const name of ['one-seat-off', 'one-seat-mutex', 'lost-update-off', 'paused-fence-off', 'paused-fence-on']) {
    const { overlaps } = tell(race(name));
    assert.equal(overlaps.length, 1, name);
    assert.deepEqual(overlaps[0].attempts, [0, 1]);
  }
  for (const name of ['one-seat-on', 'one-seat-row', 'one-seat-table', 'lost-update-on', 'crossing-on', 'crowd-on']) {
    assert.deepEqual(tell(race(name)).overlaps, [], name);
  }
});

test('what the audit calls wrong is found in the steps', () => {
  for (const name of ['one-seat-off', 'crowd-off', 'lost-update-off', 'paused-fence-off', 'one-seat-on', 'paused-fence-on', 'one-seat-compare']) {
    const one = race(name);
    assert.equal(tell(one).violations.length === 0, one.clean, name);
  }
});

test('the lease of a paused holder ends before it wakes, and the next one begins after it', () => {
  const [ana, ben] = tell(race('paused-fence-off')).attempts;
  assert.equal(ana.leases[0].end, 'over');
  assert.ok(ana.leases[0].to < ana.pauses[0].to);
  assert.ok(ben.leases[0].from >= ana.leases[0].to);
  assert.equal(ben.leases[0].end, 'released');
});

test('until when a lease stands is taken from the step, where it says so', () => {
  const one = race('paused-fence-off');
  const granted = one.records[0].steps.find(({ kind }) => kind === 'granted');
  assert.ok(granted);
  granted.until_ms = granted.at_ms + 400;
  assert.equal(Math.round(tell(one).attempts[0].leases[0].to), 401);
});

test('what is granted until it is given back does not end while its holder is paused', () => {
  const one = race('paused-fence-off');
  const granted = one.records[0].steps.find(({ kind }) => kind === 'granted');
  assert.ok(granted);
  granted.detail = 'granted until it is given back';
  delete granted.until_ms;
  const [ana] = tell(one).attempts;
  assert.equal(ana.leases[0].end, 'released');
  assert.ok(ana.leases[0].to > ana.pauses[0].to);
});

test('a key of a lock and a row are the same thing, several in one text too', () => {
  const story = tell(race('crossing-on'));
  assert.deepEqual(story.rows, ['wallet/alice', 'wallet/bob']);
  assert.deepEqual(story.attempts[0].waits[0].rows, ['wallet/alice', 'wallet/bob']);
  assert.ok(story.attempts[0].leases.every(({ end }) => end === 'released'));
});

test('a race of which nothing is told is empty', () => {
  assert.deepEqual(tell({ records: [] }), { began: 0, length: 0, lock: null, rows: [], attempts: [], overlaps: [], violations: [] });
});

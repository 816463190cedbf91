import assert from 'node:assert/strict';
import { test } from 'node:test';

import { explain } from '../../static/diagram/explain.js';
import { tell } from '../../static/diagram/story.js';
import { plain, race } from './races.js';

const told = (/** @type {string} */ name) => plain(explain(tell(race(name))));

test('a stale holder that nothing checked is told with both tokens and the times', () => {
  assert.equal(
    told('paused-fence-off'),
    'The lease of Ana (token …40192) ended at 0.601 s while Ana was paused; Ben got token …59488 and booked at 0.707 s; Ana wrote with token …40192 at 0.709 s; nothing checked it.',
  );
});

test('a stale holder that the fence refused is told as refused', () => {
  for (const name of ['paused-fence-on', 'paused-fence-write']) {
    assert.match(told(name), /^The lease of Ana .* ended at 0\.60\d s while Ana was paused; Ben got token .* and booked at .*; the write of Ana with token .* was refused by the fence, for the row had seen …\d+\.$/);
  }
});

test('without a lock the two reads before the first write are the cause', () => {
  assert.equal(
    told('one-seat-off'),
    'Ben and Ana both read seat A1 as free, at 0.000 s, before either had written; Ana wrote at 0.103 s, Ben at 0.104 s. No lock was taken, so nothing kept them apart.',
  );
  assert.match(told('lost-update-off'), /^alice → bob and alice → carol both read wallet alice as 100\.00, .* over what the first had written\./);
  assert.match(told('paused-off'), /No lock was taken/);
});

test('mutexes of two replicas are two locks', () => {
  for (const name of ['one-seat-mutex', 'lost-update-mutex']) {
    assert.match(told(name), /Each held a mutex, but of its own replica, A and B: two locks, not one\.$/);
  }
});

test('a crowd is told by one seat, and how many went the same way', () => {
  assert.match(told('crowd-off'), /both read seat A1 as free.* 9 more seats went the same way\.$/);
});

test('compare is told as the one that refused', () => {
  assert.match(told('one-seat-compare'), /the write of Ben at 0\.104 s was refused by compare, for the row had changed\.$/);
});

test('a circle of waiting is told from both sides', () => {
  assert.equal(
    told('crossing-as-given'),
    'alice held wallet alice and waited for wallet bob, bob held wallet bob and waited for wallet alice: a circle, in which neither could go on until alice gave up at 2.103 s.',
  );
});

test('a lock that worked lets one in after the other', () => {
  for (const name of ['one-seat-on', 'one-seat-row', 'one-seat-table', 'lost-update-on', 'crossing-on', 'crowd-on']) {
    assert.match(told(name), /^The lock let one in after the other: .* waited 0\.\d{3} s/);
  }
  assert.match(told('one-seat-on'), /then read it as sold to Ben\.$/);
  assert.match(told('lost-update-on'), /then read it as 20\.00\.$/);
});

test('steps that tell no cause are told nothing of', () => {
  assert.equal(explain(tell({ records: [] })), '');
});

test('a name cannot turn the sentence around', () => {
  const turned = race('one-seat-off');
  turned.records[0].who = '\u202eanA';
  assert.match(explain(tell(turned)), /\u2068\u202eanA\u2069 both read/);
});

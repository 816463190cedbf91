import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MOST_DRAWN, meetings, mostTelling } from '../../static/diagram/choose.js';
import { layout } from '../../static/diagram/layout.js';
import { mermaid } from '../../static/diagram/mermaid.js';
import { plan } from '../../static/diagram/plan.js';
import { ticks } from '../../static/diagram/scale.js';
import { tell } from '../../static/diagram/story.js';
import { seconds, tokenNames } from '../../static/diagram/words.js';
import { plain, race } from './races.js';

const planned = (/** @type {string} */ name) => plan(tell(race(name)));

test('the lanes are the buyers around the locks, and the rows', () => {
  assert.deepEqual(planned('paused-fence-off').lanes.map(({ id }) => id), ['attempt 0', 'lock seat/A1', 'attempt 1', 'seat/A1']);
  assert.deepEqual(planned('one-seat-mutex').lanes.map(({ kind, sub }) => `${kind} ${plain(sub)}`).slice(1, 3), ['lock A1 on A', 'lock A1 on B']);
  assert.match(planned('one-seat-off').lanes[1].note ?? '', /locking is off/);
});

test('what went wrong is marked at the row that it went wrong at', () => {
  const labels = (/** @type {string} */ name) => planned(name).marks.filter(({ tone }) => tone === 'wrong').map(({ lane, label }) => `${lane}: ${plain(label)}`);
  assert.deepEqual(labels('one-seat-off'), ['seat/A1: sold again to Ben']);
  assert.deepEqual(labels('lost-update-off'), ['wallet/alice: overwritten by alice → carol']);
  assert.deepEqual(labels('paused-fence-off'), ['lock seat/A1: lease over, Ana does not know', 'seat/A1: sold again to Ana · token …40192']);
  assert.deepEqual(labels('one-seat-on'), []);
});

test('a refused write is marked at its row', () => {
  const refused = planned('paused-fence-on').marks.find(({ shape }) => shape === 'refused');
  assert.equal(refused?.lane, 'seat/A1');
  assert.equal(plain(refused?.label ?? ''), 'Ana refused by the fence');
});

test('overlapping sections are drawn on both lanes', () => {
  const overlaps = planned('one-seat-off').bars.filter(({ shape }) => shape === 'overlap');
  assert.deepEqual(overlaps.map(({ lane }) => lane), ['attempt 0', 'attempt 1']);
});

test('the loss of a lease is named before it, where no arrow of the next holder is', () => {
  const drawn = planned('paused-fence-off');
  const lost = drawn.marks.find(({ shape }) => shape === 'lost');
  const placed = layout(drawn, 800);
  const label = lost && placed.labels.get(lost);
  assert.equal(label?.anchor, 'end');
  assert.ok((label?.x ?? 0) < placed.x(lost?.at ?? 0));
  // Where there is no room before it, it is named after it.
  const narrow = lost && layout(drawn, 120).labels.get(lost);
  assert.ok((narrow?.x ?? -1) >= 0);
});

test('of a crowd whole meetings are drawn, those with most sales first', () => {
  const crowd = race('crowd-off');
  const chosen = mostTelling(crowd);
  assert.ok(chosen.length <= MOST_DRAWN);
  assert.deepEqual(tell({ records: chosen }).rows, ['seat/A1', 'seat/A2']);
  assert.equal(meetings(crowd).length, 10);
  assert.equal(mostTelling(crowd, 'seat/A7').length, 5);
  assert.equal(mostTelling(race('one-seat-on')).length, 2);
});

test('labels of one lane cover nothing and stay within the drawing', () => {
  for (const name of ['paused-fence-off', 'crowd-off', 'lost-update-off']) {
    const { labels, x } = layout(planned(name), 600);
    for (const [mark, label] of labels) {
      assert.ok(label.x >= 0 && label.x <= 600, `${name}: ${label.text}`);
      assert.ok(Math.abs(label.x - x(mark.at)) < 600);
    }
  }
});

test('ticks are at round times, no nearer than can be read', () => {
  assert.deepEqual(ticks(709, 700).map(({ label }) => label), ['0.0 s', '0.1 s', '0.2 s', '0.3 s', '0.4 s', '0.5 s', '0.6 s', '0.7 s']);
  assert.deepEqual(ticks(2000, 300).map(({ label }) => label), ['0.0 s', '0.5 s', '1.0 s', '1.5 s', '2.0 s']);
  assert.equal(ticks(0, 300).length, 1);
  for (const length of [3, 104, 1500, 60_000]) {
    const list = ticks(length, 900);
    assert.ok(list.length <= 13 && new Set(list.map(({ label }) => label)).size === list.length, `${length}`);
  }
});

test('tokens are shortened by what they share, and never until two look alike', () => {
  const long = tokenNames([57470750840192, 57470750859488, null]);
  assert.deepEqual([long(57470750840192), long(57470750859488)], ['…40192', '…59488']);
  const short = tokenNames([7, 8]);
  assert.deepEqual([short(7), short(8)], ['7', '8']);
  assert.equal(seconds(1024.4), '1.024 s');
});

test('Mermaid gets a diagram whose names cannot end a line of it', () => {
  const named = race('one-seat-off');
  named.records[0].who = 'Ana;\nparticipant X %%{init}%% <b>#';
  const text = mermaid(tell(named), 'It went wrong; twice.');
  const lines = text.trim().split('\n');
  assert.equal(lines[0], 'sequenceDiagram');
  assert.equal(lines.filter((line) => line.includes('participant')).length, 4);
  assert.ok(!text.includes('<b>') && !text.includes('%%{'));
  assert.ok(lines.some((line) => line.includes('saw it free')));
});

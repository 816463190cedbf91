import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Stream, pause } from '../../static/page/stream.js';

test('pages whose stream broke off at once come back one after the other', () => {
  const chances = [0, 0.25, 0.5, 0.75, 1];
  assert.deepEqual(chances.map((chance) => pause(1, chance)), [250, 375, 500, 625, 750]);
});

test('a page waits longer after each failure, and never for long', () => {
  assert.deepEqual([1, 2, 3, 4, 5, 6, 100].map((failures) => pause(failures, 0.5)), [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test('a stream that is opened anew is one stream, and none while the page is hidden', () => {
  /** @type {Set<EventTarget>} */
  const open = new Set();
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  class Source extends EventTarget {
    constructor() {
      super();
      open.add(this);
    }
    close() {
      open.delete(this);
    }
  }
  Object.assign(globalThis, { document: page, window: Object.assign(new EventTarget(), { clearTimeout }), EventSource: Source });
  const stream = new Stream('/live');
  stream.start();
  const [first] = open;
  stream.reopen();
  assert.equal(open.size, 1);
  assert.ok(!open.has(first));
  page.visibilityState = 'hidden';
  stream.reopen();
  assert.equal(open.size, 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

const empty = { getElementById: () => null };
Object.assign(globalThis, {
  location: { search: '' },
  document: empty,
  DOMParser: class {
    parseFromString() {
      return empty;
    }
  },
});
const { Parts } = await import('../../static/page/parts.js');

/** Answers that come when they are let go, one for each question. */
function questions() {
  /** @type {(() => void)[]} */
  const open = [];
  /** @type {(() => void)[]} */
  const watching = [];
  globalThis.fetch = () =>
    new Promise((resolve) => {
      open.push(() => resolve(/** @type {any} */ ({ ok: true, text: async () => '' })));
      watching.forEach((sees) => sees());
    });
  const asked = (/** @type {number} */ times) =>
    new Promise((resolve) => {
      const look = () => open.length >= times && resolve(undefined);
      watching.push(look);
      look();
    });
  return { open, asked };
}

test('what is wanted at once is asked for once', async () => {
  const { open, asked } = questions();
  const parts = new Parts('main');
  const all = Promise.all([parts.refresh(), parts.tellOf(['a'])]);
  await asked(1);
  open[0]();
  await all;
  assert.equal(open.length, 1);
});

test('what is wanted after the question has left is asked for again', async () => {
  const { open, asked } = questions();
  const parts = new Parts('main');
  const first = parts.refresh();
  await asked(1);
  let answered = false;
  const second = parts.refresh().then(() => (answered = true));
  open[0]();
  await asked(2);
  assert.equal(answered, false);
  open[1]();
  await Promise.all([first, second]);
  assert.equal(open.length, 2);
});

test('who waits for the next drawing does not wait for the one after it', async () => {
  const { open, asked } = questions();
  const parts = new Parts('main');
  const first = parts.refresh();
  await asked(1);
  const drawn = parts.nextDrawing();
  open[0]();
  await drawn;
  await asked(2);
  open[1]();
  await first;
  assert.equal(open.length, 2);
});

test('who waits for a drawing in which something is so waits through those in which it is not', async () => {
  const { open, asked } = questions();
  const parts = new Parts('main');
  let isSo = false;
  let drawn = false;
  const waits = parts.drawn(() => isSo).then(() => (drawn = true));
  const first = parts.refresh();
  await asked(1);
  open[0]();
  await first;
  assert.equal(drawn, false);
  isSo = true;
  const second = parts.refresh();
  await asked(2);
  open[1]();
  await Promise.all([second, waits]);
  assert.equal(drawn, true);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Meanwhile } from '../../static/page/meanwhile.js';

test('what was heard since something was asked for is shown over the answer, in its order', async () => {
  const meanwhile = new Meanwhile();
  let shown = '';
  const says = (/** @type {string} */ what) => meanwhile.hears(() => (shown = `${shown} ${what}`));
  says('before');
  let answer = (/** @type {string} */ _) => {};
  const asked = meanwhile.asks(() => new Promise((resolve) => (answer = resolve)), (what) => (shown = what));
  says('first');
  says('second');
  assert.equal(shown, ' before first second');
  answer('answer');
  await asked;
  assert.equal(shown, 'answer first second');
  says('after');
  assert.equal(shown, 'answer first second after');
});

test('each of two questions has what was heard since it was asked, and one without an answer shows nothing', async () => {
  const meanwhile = new Meanwhile();
  let shown = '';
  const says = (/** @type {string} */ what) => meanwhile.hears(() => (shown = `${shown} ${what}`));
  let late = (/** @type {string} */ _) => {};
  const asked = meanwhile.asks(() => new Promise((resolve) => (late = resolve)), (what) => (shown = what));
  says('first');
  await assert.rejects(meanwhile.asks(() => Promise.reject(new Error('none')), () => (shown = 'never')));
  await meanwhile.asks(() => Promise.resolve('quick'), (what) => (shown = what));
  says('second');
  assert.equal(shown, 'quick second');
  late('late');
  await asked;
  assert.equal(shown, 'late first second');
});

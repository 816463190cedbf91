// The forms, without leaving the page. Each asks for what it would ask for without a script.

import { announce } from '../page/announce.js';
import { once } from '../page/busy.js';
import { byId, make } from '../page/dom.js';
import { send, sendForm } from '../page/send.js';

/** @typedef {import('../page/parts.js').Parts} Parts */

/**
 * @param {string} room
 * @param {Parts} parts
 */
export function enhanceForms(room, parts) {
  const api = `/api/rooms/${encodeURIComponent(room)}`;
  onSubmit('toggle', async (form, button) => {
    const locking = button?.getAttribute('value') === 'true';
    const sent = send('PATCH', `${api}/switches`, { locking }).then(() => parts.nextDrawing());
    // As soon as it is drawn as it is now, it can be pressed again. The stream may be faster than the answer.
    const isShown = () => byId('toggle').classList.contains('is-off') !== locking;
    await Promise.race([sent, parts.drawn(isShown)]);
  });
  const change = async (/** @type {Record<string, unknown>} */ switches) => {
    try {
      await send('PATCH', `${api}/switches`, switches);
    } finally {
      // A choice that was refused is shown as chosen until it is drawn anew.
      await parts.refresh();
    }
  };
  onSubmit('switches', (form) => change(switchesOf(changed(new FormData(form)))));
  onChange('switches', (name, value) => change(switchesOf([[name, value]])));
  onSubmit('races', async (form, button) => {
    await send('POST', `${api}/races`, { race: button?.getAttribute('value') });
    await parts.tellOf([]);
  });
  onSubmit('reset', async () => {
    await send('POST', `${api}/reset`, {});
    await parts.tellOf([]);
  });
  for (const id of ['seats', 'wallets']) {
    onSubmit(id, async (form, button) => {
      const fields = new FormData(form);
      if (button?.getAttribute('name')) {
        fields.set(button.getAttribute('name') ?? '', button.getAttribute('value') ?? '');
      }
      const { attempts } = await sendForm(form.action, fields);
      await parts.tellOf(attempts);
      announce('attempt', byId('attempt').innerText);
    });
  }
}

/**
 * Listens above the form, which may be drawn anew.
 * @param {string} id
 * @param {(form: HTMLFormElement, button: HTMLElement | null) => Promise<void>} does
 */
function onSubmit(id, does) {
  byId(id).addEventListener('submit', (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const button = event.submitter;
    void once(button ?? form, () => tryTo(() => does(form, button)));
  });
}

/**
 * A control works as soon as it is set, and alone: who sets another one at the same time loses nothing. The form's
 * button is for pages without a script.
 * @param {string} id
 * @param {(name: string, value: string) => Promise<void>} does
 */
function onChange(id, does) {
  document.body.classList.add('at-once');
  byId(id).addEventListener('change', (event) => {
    const control = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target);
    if (control.reportValidity()) {
      void tryTo(() => does(control.name, control.value));
    }
  });
}

/** @param {() => Promise<void>} does */
async function tryTo(does) {
  try {
    await does();
    clearProblem();
  } catch (problem) {
    showProblem(/** @type {Error} */ (problem));
  }
}

/**
 * What differs from how the form was drawn.
 * @param {FormData} fields
 */
function changed(fields) {
  const was = new URLSearchParams(String(fields.get('was')));
  fields.delete('was');
  return [...fields].filter(([name, value]) => was.get(name) !== value);
}

const TRUTHS = ['locking', 'compare', 'renew'];
const NUMBERS = ['ttl_ms', 'wait_ms', 'think_ms'];

/** @param {Iterable<[string, FormDataEntryValue]>} fields */
function switchesOf(fields) {
  return Object.fromEntries(
    [...fields].map(([name, value]) => {
      if (TRUTHS.includes(name)) {
        return [name, value === 'true'];
      }
      return [name, NUMBERS.includes(name) ? Number(value) : value];
    }),
  );
}

/** @param {Error} problem */
function showProblem(problem) {
  const place = byId('problem');
  place.replaceChildren(make('strong', {}, 'That did not work. '), problem.message, ' ', make('button', { type: 'button', class: 'button small', onclick: clearProblem }, 'Close'));
  place.hidden = false;
}

function clearProblem() {
  byId('problem').hidden = true;
}

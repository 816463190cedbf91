// The page of a room, live: what happens on any replica is seen as it happens. Without this script the page is whole,
// but of the moment in which it was asked for.

import { announce } from './page/announce.js';
import { byId } from './page/dom.js';
import { Meanwhile } from './page/meanwhile.js';
import { Parts } from './page/parts.js';
import { Pulse } from './page/pulse.js';
import { ask, whyNot } from './page/send.js';
import { Stream, pause } from './page/stream.js';
import { changeAudit } from './parts/audit.js';
import { enhanceForms } from './parts/forms.js';
import { LastRace } from './parts/race.js';
import { Replicas, sayBroken, sayConnected } from './parts/replicas.js';
import { makeGrid } from './parts/seat_grid.js';
import { makeList } from './parts/seat_list.js';
import { SeatMap } from './parts/seat_map.js';
import { changeSum, changeWallets, hasWallets } from './parts/wallets.js';

const { room = '', me = '' } = byId('main').dataset;
const api = `/api/rooms/${encodeURIComponent(room)}`;

const parts = new Parts(room);
const seats = new SeatMap();
const replicas = new Replicas(me);
const race = new LastRace(room, parts);

makeGrid(seats);
makeList(seats);
enhanceForms(room, parts);
void race.load();

let epoch = Number(byId('main').dataset.epoch);
let greeted = false;
/** As it was heard last: the toggle on the page is drawn later. */
let locking = byId('toggle').querySelector('[role="switch"]')?.getAttribute('aria-checked') === 'true';

/** In milliseconds: the largest room on a slow machine takes some seconds. */
const ANSWERS_WITHIN = 30_000;
let askingAgain = 0;

const pulse = new Pulse();
const stream = new Stream(`${api}/live`);
const meanwhile = new Meanwhile();

/** @type {Record<string, (data: any) => void>} */
const events = {
  hello: sayHello,
  step: (step) => race.step(step),
  ended: (ended) => race.ended(ended),
  seats: ({ seats: changed }) => meanwhile.hears(() => seats.change(changed)),
  wallets: ({ wallets }) => meanwhile.hears(() => changeWallets(wallets)),
  audit: (audit) => meanwhile.hears(() => sawAudit(audit)),
  switches: (told) => meanwhile.hears(() => sawSwitches(told)),
  race: (event) => void race.change(event),
  replicas: (event) => replicas.change(event.replicas),
  gap: () => void reload(),
};
for (const [name, does] of Object.entries(events)) {
  stream.addEventListener(name, (event) => {
    heard();
    does(/** @type {CustomEvent} */ (event).detail);
  });
}
stream.addEventListener('open', heard);
pulse.addEventListener('gone', () => sayBroken(replicas));
// That the replica answers does not tell that its stream is still there.
pulse.addEventListener('back', () => stream.reopen());
stream.addEventListener('broken', (event) => {
  // One that breaks off once comes back at once; nobody needs to know.
  if (/** @type {CustomEvent} */ (event).detail > 1) {
    void sayWhyBroken();
  }
});
stream.start();
pulse.start();

/** The replica may be gone, or answer that it has no such room any more, or no place for one more reader. */
async function sayWhyBroken() {
  const problem = await whyNot(`${api}/live`);
  if (problem?.status === 404) {
    location.reload();
  } else if (problem && !stream.isOpen) {
    sayBroken(replicas, problem.status === 0 ? undefined : problem.message);
  }
}

/** The stream has told something. */
function heard() {
  pulse.heard();
  sayConnected(replicas);
}

/**
 * What follows tells how the room stands, but for seats that are free: if it was reset meanwhile, all is asked for.
 * @param {{epoch: number}} hello
 */
function sayHello({ epoch: now }) {
  if (now !== epoch) {
    epoch = now;
    void reload();
  } else if (greeted) {
    void parts.refreshIfItCan();
    void race.comesBack();
  }
  greeted = true;
}

/** The switches changed, or the room was reset. @param {{epoch: number, switches: {locking: boolean}}} told */
function sawSwitches({ epoch: now, switches }) {
  locking = switches.locking;
  if (now !== epoch) {
    epoch = now;
    void parts.refreshIfItCan();
  }
}

/** @param {import('./parts/audit.js').Audit} audit */
function sawAudit(audit) {
  const before = byId('audit').querySelector('.sentence')?.textContent;
  changeAudit(audit, { room, locking });
  changeSum(audit);
  const after = byId('audit').querySelector('.sentence')?.textContent;
  if (before !== after) {
    announce('audit', after ?? '');
  }
}

/**
 * Something was missed: all that can have changed is asked for again, and shown where it differs; later once more, if it
 * cannot be had now.
 */
async function reload(failures = 0) {
  window.clearTimeout(askingAgain);
  const asksForRoom = () => ask(api, { signal: AbortSignal.timeout(ANSWERS_WITHIN) });
  try {
    await Promise.all([meanwhile.asks(asksForRoom, show), parts.refresh(), race.comesBack()]);
  } catch (problem) {
    if (/** @type {import('./page/send.js').Problem} */ (problem).status === 404) {
      // The room is gone: the page that says so is another one.
      location.reload();
      return;
    }
    window.clearTimeout(askingAgain);
    askingAgain = window.setTimeout(() => void reload(failures + 1), pause(failures + 1, Math.random()));
  }
}

/** @param {any} state the room */
function show(state) {
  const names = state.seats.map((/** @type {any} */ { seat }) => seat);
  if (!seats.has(names) || !hasWallets(state.wallets)) {
    // Laid out anew: that is another page.
    location.reload();
    return;
  }
  const twice = new Map(state.audit.seats_sold_twice.map((/** @type {any} */ sold) => [sold.seat, sold.bookings.map((/** @type {any} */ sale) => sale.buyer)]));
  seats.change(state.seats.map((/** @type {any} */ seat) => ({ ...seat, buyers: twice.get(seat.seat) ?? (seat.buyer ? [seat.buyer] : []) })));
  const expected = new Map(state.audit.wallets.map((/** @type {any} */ off) => [off.wallet, off.expected]));
  changeWallets(state.wallets.map((/** @type {any} */ wallet) => ({ ...wallet, expected: expected.get(wallet.wallet) })));
  locking = state.switches.locking;
  sawAudit(state.audit);
}

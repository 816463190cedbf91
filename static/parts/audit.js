// The audit: one sentence, and under it what is wrong in detail.

import { tokenNames } from '../diagram/words.js';
import { bdi, byId, make, setText } from '../page/dom.js';
import { signed } from './wallets.js';

/**
 * @typedef {{buyer: string, replica: string, token: number | null}} Sale
 * @typedef {{seat: string, bookings: Sale[]}} SoldTwice
 * @typedef {{clean: boolean, sentence: string, attempts: number, seats_sold_twice: SoldTwice[],
 *   money: {opened: string, now: string, difference: string},
 *   wallets: {wallet: string, balance: string, expected: string}[],
 *   token_disorder: {seat: string, buyer: string, epoch: number, token: number, after_epoch: number, after_token: number}[],
 *   leases_left: number | null, more?: More}} Audit
 * @typedef {{seats_sold_twice: number, bookings: Record<string, number>, wallets: number, token_disorder: number}} More
 *   what the stream has cut off
 */

/** @type {More} */
const NO_MORE = { seats_sold_twice: 0, bookings: {}, wallets: 0, token_disorder: 0 };

/** How many of one kind are listed; the seat map and the audit's JSON have them all. */
const MOST_LISTED = 12;
/** More lines than this are folded under the sentence. */
const MOST_UNFOLDED = 4;

/**
 * @param {Audit} audit
 * @param {{room: string, locking: boolean}} of
 */
export function changeAudit(audit, { room, locking }) {
  const place = byId('audit');
  place.className = `verdict ${audit.clean ? 'clean' : 'wrong'}`;
  const sentence = place.querySelector('.sentence');
  if (sentence?.textContent !== `${mark(audit)} ${audit.sentence}.`) {
    sentence?.replaceChildren(make('span', { 'aria-hidden': 'true' }, mark(audit)), ` ${audit.sentence}.`);
  }
  document.title = `${audit.clean ? '' : `✗ ${audit.sentence} · `}room ${room} · doublebook`;
  showDetails(place, details(audit, room), audit);
  setText(place.querySelector(':scope > .quiet'), [hint(audit, locking), leases(audit.leases_left)].filter(Boolean).join(' '));
}

/** @param {Audit} audit */
const mark = ({ clean }) => (clean ? '✓' : '✗');

/** @param {HTMLElement} place @param {HTMLLIElement[]} lines @param {Audit} audit */
function showDetails(place, lines, audit) {
  const was = place.querySelector(':scope > .details, :scope > details');
  if (lines.length === 0) {
    was?.remove();
    return;
  }
  const list = make('ul', { class: 'details' }, ...lines);
  const folded = audit.seats_sold_twice.length + audit.wallets.length + audit.token_disorder.length > MOST_UNFOLDED;
  // What does not differ stays: the focus may be there.
  const foldStays = folded && was instanceof HTMLDetailsElement;
  const old = foldStays ? was.querySelector('.details') : was;
  if (old?.isEqualNode(list)) {
    return;
  }
  const shown = folded && !foldStays ? make('details', {}, make('summary', {}, 'Which seats and wallets'), list) : list;
  old?.remove();
  if (foldStays) {
    was.append(shown);
  } else {
    place.querySelector('.sentence')?.after(shown);
  }
}

/** @param {Audit} audit @param {string} room @returns {HTMLLIElement[]} */
function details({ seats_sold_twice: seats, money, wallets, token_disorder: disorder, more: cut = NO_MORE }, room) {
  const listed = [...seats.slice(0, MOST_LISTED).flatMap(({ bookings }) => bookings), ...disorder.slice(0, MOST_LISTED)];
  const name = tokenNames(listed.flatMap((one) => ('after_token' in one ? [one.token, one.after_token] : [one.token])));
  const unlisted = [seats, wallets, disorder].reduce((sum, list) => sum + Math.max(0, list.length - MOST_LISTED), 0);
  const more = unlisted + cut.seats_sold_twice + cut.wallets + cut.token_disorder;
  return [
    ...seats.slice(0, MOST_LISTED).map((sold) => soldTwice(sold, cut.bookings[sold.seat] ?? 0, name)),
    ...(money.opened === money.now ? [] : [make('li', {}, moneyInWords(money))]),
    ...wallets.slice(0, MOST_LISTED).map((off) =>
      make('li', {}, strong(bdi(off.wallet)), ` holds ${signed(off.balance)} and should hold ${signed(off.expected)}.`),
    ),
    ...disorder.slice(0, MOST_LISTED).map((late) =>
      make('li', {}, strong(late.seat), ': the booking of ', bdi(late.buyer), ` with token ${name(late.token)} (epoch ${late.epoch}) came after one with token ${name(late.after_token)} (epoch ${late.after_epoch}).`),
    ),
    ...(more === 0 ? [] : [make('li', {}, `And ${more} more; the `, make('a', { href: `/api/rooms/${room}/audit` }, 'audit as JSON'), ' has them all.')]),
  ];
}

/** @param {SoldTwice} sold @param {number} more bookings that are not listed @param {(token: number) => string} name */
function soldTwice({ seat, bookings }, more, name) {
  const all = bookings.length + more;
  const times = all > 2 ? `${all} times, ` : '';
  const end = more === 0 ? '.' : ` and ${more} more.`;
  const between = (/** @type {number} */ index) => (index === bookings.length - 1 ? end : all === 2 ? ' and ' : ', ');
  const sales = bookings.flatMap(({ buyer, replica, token }, index) => [
    bdi(buyer), ' (replica ', bdi(replica), token === null ? ', no token)' : `, token ${name(token)})`, between(index),
  ]);
  return make('li', {}, strong(seat), ` was sold ${times}to `, ...sales);
}

/** @param {string | Node} content */
function strong(content) {
  return make('strong', {}, content);
}

/** @param {Audit['money']} money */
function moneyInWords({ opened, now, difference }) {
  const vanished = difference.startsWith('-');
  const what = vanished ? `${difference.slice(1)} vanished` : `${difference} appeared from nowhere`;
  return `The wallets were opened with ${signed(opened)} and hold ${signed(now)}: ${what}.`;
}

/** @param {Audit} audit @param {boolean} locking */
function hint({ clean, attempts }, locking) {
  if (clean && locking) {
    return attempts === 0 ? 'Start a race. Then switch locking off and start it again.' : '';
  }
  if (locking) {
    return '';
  }
  return clean ? 'Start a race: now nothing keeps the buyers apart.' : 'Switch locking on and start the race again.';
}

/** @param {number | null} left */
function leases(left) {
  if (left === null) {
    return 'A replica did not say how many leases of ended attempts still stand.';
  }
  return left === 0 ? 'No lease of an ended attempt is left.' : `${left} ${left === 1 ? 'lease' : 'leases'} of ended attempts may still stand.`;
}

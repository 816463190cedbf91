// The seats on the page: finds the cell of a seat without searching, and changes the cells that changed only.

import { bdi, byId, make, setText } from '../page/dom.js';

/** @typedef {{seat: string, state: string, buyers: string[], more?: number}} Seat `more` buyers are not named */

/** How many buyers of one seat are named on the map; the audit names all. */
const MOST_NAMED = 3;

export class SeatMap extends EventTarget {
  /** @type {Map<string, HTMLTableRowElement>} */ #rows = new Map();

  constructor() {
    super();
    this.table = /** @type {HTMLTableElement} */ (byId('seats').querySelector('table.map'));
    for (const row of this.table.tBodies[0].rows) {
      this.#rows.set(row.cells[0].textContent ?? '', row);
    }
    this.all = [...this.#rows.values()].reduce((sum, row) => sum + row.cells.length - 1, 0);
  }

  /**
   * The cell of a seat: `AB12` is the cell 12 of row `AB`.
   * @param {string} seat
   */
  cell(seat) {
    const letters = seat.replace(/\d+$/, '');
    return this.#rows.get(letters)?.cells[Number(seat.slice(letters.length))];
  }

  /** Whether these are the seats of the map. @param {string[]} seats */
  has(seats) {
    return seats.length === this.all && seats.every((seat) => this.cell(seat));
  }

  /** Cells that are sold, in order. */
  sold() {
    return [...this.table.querySelectorAll('td.sold')];
  }

  /** @param {Seat[]} seats */
  change(seats) {
    const changed = seats.filter((seat) => this.#changeOne(seat));
    if (changed.length > 0) {
      this.#sumUp();
      this.dispatchEvent(new CustomEvent('changed', { detail: changed }));
    }
  }

  /** @param {Seat} seat @returns {boolean} whether anything was to be changed */
  #changeOne({ seat, state, buyers, more = 0 }) {
    const cell = this.cell(seat);
    const now = state === 'free' ? [] : buyers.length > 0 ? buyers : [state];
    const times = now.length + more;
    if (!cell || isShown(cell, now, times)) {
      return false;
    }
    const hadFocus = cell.contains(document.activeElement);
    const reached = cell.querySelector('[tabindex="0"]') !== null || cell.tabIndex === 0;
    cell.className = ['', 'sold', 'sold often'][Math.min(2, times)];
    cell.replaceChildren(...content(seat, now, times));
    this.dispatchEvent(new CustomEvent('cell', { detail: { cell, hadFocus, reached } }));
    return true;
  }

  #sumUp() {
    const sold = this.table.querySelectorAll('td.sold').length;
    const often = this.table.querySelectorAll('td.often').length;
    const more = often === 0 ? '' : `, ${often} of them more than once`;
    const summary = byId('seats').querySelector('h2 span');
    setText(summary, `· ${sold} of ${this.all} ${this.all === 1 ? 'seat' : 'seats'} sold${more}`);
    summary?.classList.toggle('is-wrong', often > 0);
  }
}

/** @param {HTMLTableCellElement} cell @param {string[]} buyers @param {number} times */
function isShown(cell, buyers, times) {
  const shown = cell.classList.contains('often') ? Number(/×(\d+)/.exec(cell.textContent ?? '')?.[1]) : Number(cell.classList.contains('sold'));
  const named = [...cell.querySelectorAll('bdi')].map((name) => name.textContent);
  return shown === times && buyers.slice(0, MOST_NAMED).every((buyer, index) => named[index] === buyer);
}

/**
 * As the server draws it.
 * @param {string} seat @param {string[]} buyers @param {number} times
 * @returns {(Node | string)[]}
 */
function content(seat, buyers, times) {
  const hidden = (/** @type {string} */ text) => make('span', { class: 'hidden' }, text);
  if (times === 0) {
    return [make('button', { name: 'seat', value: seat }, seat)];
  }
  if (times === 1) {
    return [make('b', {}, seat), ' ', hidden('sold to'), ' ', bdi(buyers[0])];
  }
  const named = buyers.slice(0, MOST_NAMED).flatMap((buyer, index) => (index === 0 ? [bdi(buyer)] : [' · ', bdi(buyer)]));
  const more = times > MOST_NAMED ? [` +${times - MOST_NAMED}`] : [];
  return [make('b', {}, `${seat} ×${times}`), ' ', hidden(`sold ${times} times, to`), ' ', ...named, ...more];
}

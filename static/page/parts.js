// What the page says in words that only the server has: switches and their notes, races, what became of attempts. When
// something happened, those parts are asked for again.

import { morph } from './morph.js';
import { askForPage } from './send.js';

const PARTS = ['toggle', 'races', 'race', 'attempt', 'switches', 'locks'];

/** Several things that happen at once are one question. */
const A_MOMENT = 80;

export class Parts extends EventTarget {
  /** @type {string[]} */ #attempts = new URLSearchParams(location.search).getAll('attempt');
  /** @type {Promise<void> | null} */ #asking = null;
  /** How often somebody wanted it. */ #wanted = 0;

  /** @param {string} room */
  constructor(room) {
    super();
    this.room = room;
  }

  /**
   * Shows what became of attempts, from now on.
   * @param {string[]} attempts
   */
  tellOf(attempts) {
    this.#attempts = attempts;
    return this.refresh();
  }

  /** Asks again, soon; whoever wants it meanwhile waits, too, for an answer to a question that was asked after that. */
  refresh() {
    this.#wanted += 1;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** Asks again, soon, but waits only for what is drawn next; what was asked for too late for that is drawn after it. */
  async nextDrawing() {
    const drawn = new Promise((resolve) => this.addEventListener('fresh', resolve, { once: true }));
    await Promise.race([this.refresh(), drawn]);
  }

  /** The same for whoever can do nothing about a replica that does not answer: the stream tells that, and comes back. */
  refreshIfItCan() {
    return this.refresh().catch(() => {});
  }

  /**
   * Waits for a drawing in which this is so.
   * @param {() => boolean} isSo
   */
  async drawn(isSo) {
    do {
      await new Promise((resolve) => this.addEventListener('fresh', resolve, { once: true }));
    } while (!isSo());
  }

  async #ask() {
    await new Promise((soon) => setTimeout(soon, A_MOMENT));
    const wanted = this.#wanted;
    const page = await askForPage(this.#address(this.#attempts));
    for (const id of PARTS) {
      const [now, then] = [document.getElementById(id), page.getElementById(id)];
      if (now && then) {
        morph(now, then);
      }
    }
    this.dispatchEvent(new Event('fresh'));
    if (wanted !== this.#wanted) {
      await this.#ask();
    }
  }

  /** @param {string[]} attempts */
  #address(attempts) {
    const query = new URLSearchParams(attempts.map((attempt) => ['attempt', attempt]));
    const own = new URLSearchParams(location.search);
    for (const name of ['view', 'race']) {
      const value = own.get(name);
      if (value) {
        query.set(name, value);
      }
    }
    return `/rooms/${encodeURIComponent(this.room)}/parts?${query}`;
  }
}

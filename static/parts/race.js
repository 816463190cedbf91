// The last race: its diagram while it runs, from the steps as they come, and after it, from what was kept.

import { Diagram } from '../diagram/view.js';
import { announce } from '../page/announce.js';
import { byId, make, setText } from '../page/dom.js';
import { ask } from '../page/send.js';

/**
 * @typedef {{at_ms: number, replica: string, attempt: string, who: string, what: string, kind: string, key: string | null,
 *   token: number | null, detail: string, until_ms?: number}} TheStep
 */

/** How often a running race is drawn. */
const DRAW_EVERY = 120;
/** A race whose end never comes (its replica is gone) is not shown as running for ever. */
const LONGEST_RACE = 180_000;

export class LastRace {
  /** @type {Map<string, import('../diagram/story.js').RaceRecord> | null} while a race runs */ #running = null;
  /** @type {Diagram | null} */ #diagram = null;
  #drawing = 0;
  #givingUp = 0;

  /** @param {string} room @param {import('../page/parts.js').Parts} parts */
  constructor(room, parts) {
    this.room = room;
    this.parts = parts;
    this.races = byId('races');
    this.note = this.races.querySelector('h2 span')?.textContent ?? '';
    parts.addEventListener('fresh', () => this.#findPlace());
  }

  /** Asks for the last race and draws it; where the page tells of none, there is none to ask for. */
  async load() {
    if (byId('race').hidden) {
      return;
    }
    const race = await ask(`/api/rooms/${encodeURIComponent(this.room)}/races/last`).catch(() => null);
    if (race && !this.#running) {
      this.#show(race, false);
    }
  }

  /** The end of a race may have been missed. One that is under way still tells its end. */
  comesBack() {
    window.clearTimeout(this.#givingUp);
    this.#running = null;
    this.#markRunning();
    return this.load();
  }

  /** @param {{race: string, state: 'began' | 'ended'}} event */
  async change({ race, state }) {
    window.clearTimeout(this.#givingUp);
    if (state === 'began') {
      this.#running = new Map();
      this.name = race;
      this.#givingUp = window.setTimeout(() => this.change({ race, state: 'ended' }), LONGEST_RACE);
      this.#markRunning();
      announce('race', 'A race is running.');
      return;
    }
    this.#running = null;
    this.#markRunning();
    await this.parts.refreshIfItCan();
    await this.load();
    const told = document.querySelector('#race .cause')?.textContent;
    announce('race', `The race has ended. ${told ?? ''}`);
  }

  /** @param {TheStep} step */
  step(step) {
    if (!this.#running) {
      return;
    }
    const { attempt, replica, who, what } = step;
    const record = this.#running.get(attempt) ?? { attempt, replica, who, what, outcome: null, steps: [] };
    record.steps.push(step);
    this.#running.set(attempt, record);
    this.#drawing ||= window.setTimeout(() => this.#drawRunning(), DRAW_EVERY);
  }

  /** @param {{attempt: string, outcome: string}} ended */
  ended({ attempt, outcome }) {
    const record = this.#running?.get(attempt);
    if (record) {
      record.outcome = outcome;
    }
  }

  #drawRunning() {
    this.#drawing = 0;
    if (this.#running && this.#running.size > 0) {
      const records = [...this.#running.values()].map((record) => ({ ...record, steps: [...record.steps] }));
      this.#show({ race: this.name, records }, true);
    }
  }

  /** @param {import('../diagram/story.js').Race} race @param {boolean} live */
  #show(race, live) {
    const section = byId('race');
    section.hidden = false;
    const place = document.getElementById('diagram') ?? section.appendChild(make('div', { id: 'diagram', class: 'diagram', 'data-keep': '' }));
    if (this.#diagram?.place !== place) {
      this.#diagram = new Diagram(place, { room: this.room });
    }
    this.#diagram.show(race, { live });
  }

  /** The place of the diagram comes and goes with the race, and one that is new is empty. */
  #findPlace() {
    this.#markRunning();
    if (this.#running === null && this.#diagram?.place !== document.getElementById('diagram')) {
      void this.load();
    }
  }

  #markRunning() {
    for (const button of this.races.querySelectorAll('button')) {
      const runs = this.#running !== null && button.value === this.name;
      button.classList.toggle('runs', runs);
    }
    document.body.classList.toggle('running', this.#running !== null);
    setText(this.races.querySelector('h2 span'), this.#running === null ? this.note : '· one is running; another can start when it has ended');
  }
}

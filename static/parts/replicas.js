// The replicas in the header, and what to do when the one that served this page is gone.

import { announce } from '../page/announce.js';
import { bdi, byId, make } from '../page/dom.js';

const ALIVE = 'alive';
const GONE = 'does not answer';

/** @typedef {{name: string, url: string, alive: boolean, silent?: boolean}} Replica */

export class Replicas {
  /** @type {Map<string, string>} where each replica has this page */ #pages = new Map();
  /** @type {Map<string, string>} what was said of each */ #words = new Map();
  /** @type {Replica[]} as they were told last */ #told = [];

  /** @param {string} me */
  constructor(me) {
    this.me = me;
    this.list = byId('replicas');
    for (const entry of this.list.querySelectorAll('li')) {
      const link = entry.querySelector('a');
      if (link) {
        this.#pages.set(entry.getAttribute('data-name') ?? '', link.href);
      }
      this.#words.set(entry.getAttribute('data-name') ?? '', entry.classList.contains('gone') ? GONE : ALIVE);
    }
  }

  /** @param {Replica[]} replicas */
  change(replicas) {
    for (const { name, url } of replicas) {
      if (name !== this.me && /^https?:\/\//.test(url)) {
        this.#pages.set(name, url.replace(/\/+$/, '') + location.pathname + location.search);
      }
    }
    this.#told = replicas;
    this.#draw(replicas);
    this.#sayWhatIsNew(replicas);
  }

  /** Shows whether the page's own replica answers: it cannot tell that itself. @param {boolean} answers */
  showOwn(answers) {
    if (this.#told.length > 0) {
      this.#draw(this.#told.map((replica) => (replica.name === this.me ? { ...replica, alive: answers } : replica)));
    }
  }

  /** @param {Replica[]} replicas */
  #draw(replicas) {
    this.list.replaceChildren(...replicas.map((replica) => this.#entry(replica)));
  }

  /** @param {Replica} replica */
  #entry(replica) {
    const { name, alive } = replica;
    const words = inWords(replica);
    const well = words === ALIVE;
    const link = name !== this.me && alive ? this.#pages.get(name) : undefined;
    const shown = link ? make('a', { href: link }, bdi(name)) : bdi(name);
    return make('li', { class: well ? 'pill' : 'pill gone', 'data-name': name }, make('span', { 'aria-hidden': 'true' }, well ? '●' : '○'), ' ', shown, ` ${words}`);
  }

  /** @param {Replica[]} replicas */
  #sayWhatIsNew(replicas) {
    for (const replica of replicas) {
      const words = inWords(replica);
      if ((this.#words.get(replica.name) ?? words) !== words) {
        announce(`replica ${replica.name}`, `Replica ${replica.name} ${words === ALIVE ? 'is alive again' : words}.`);
      }
      this.#words.set(replica.name, words);
    }
  }

  /** Where else this page can be had: at replicas that were there when last heard of. */
  elsewhere() {
    return [...this.#pages].filter(([name]) => name !== this.me && this.#words.get(name) === ALIVE);
  }
}

/** @param {Replica} replica */
function inWords({ alive, silent }) {
  if (alive) {
    return ALIVE;
  }
  return silent ? 'is silent' : GONE;
}

/**
 * Says that the stream broke off, and where to go on. A page may not listen to another replica: it is another origin.
 * @param {Replicas} replicas
 * @param {string} [answer] what the replica says, if it answers
 */
export function sayBroken(replicas, answer) {
  const place = byId('link-state');
  if (!place.hidden) {
    // It stands there; drawn anew, it would be read out again and take the focus from its links.
    return;
  }
  replicas.showOwn(answer !== undefined);
  const others = replicas.elsewhere().flatMap(([name, page]) => [' ', make('a', { class: 'button', href: page, onclick: takeBuyerAlong }, 'Go on at replica ', bdi(name))]);
  const words = answer === undefined ? ' does not answer' : ` answers: ${answer}`;
  place.replaceChildren('Replica ', bdi(replicas.me), `${words}; trying again. What you see may be old.`, ...others);
  place.hidden = false;
}

/** Who is typed in here is the buyer there. @param {Event} event */
function takeBuyerAlong({ currentTarget }) {
  const link = /** @type {HTMLAnchorElement} */ (currentTarget);
  const page = new URL(link.href);
  page.searchParams.set('buyer', /** @type {HTMLInputElement} */ (byId('buyer')).value);
  link.href = page.href;
}

/** @param {Replicas} replicas */
export function sayConnected(replicas) {
  const place = byId('link-state');
  if (!place.hidden) {
    place.hidden = true;
    replicas.showOwn(true);
  }
}

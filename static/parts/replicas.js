// The replicas in the header, and what to do when the one that served this page is gone.

import { bdi, byId, make } from '../page/dom.js';

/** @typedef {{name: string, url: string, alive: boolean, silent?: boolean}} Replica */

export class Replicas {
  /** @type {Map<string, string>} where each replica has this page */ #pages = new Map();

  /** @param {string} me */
  constructor(me) {
    this.me = me;
    this.list = byId('replicas');
    for (const entry of this.list.querySelectorAll('li')) {
      const link = entry.querySelector('a');
      if (link) {
        this.#pages.set(entry.getAttribute('data-name') ?? '', link.href);
      }
    }
  }

  /** @param {Replica[]} replicas */
  change(replicas) {
    for (const { name, url } of replicas) {
      if (name !== this.me && /^https?:\/\//.test(url)) {
        this.#pages.set(name, url.replace(/\/+$/, '') + location.pathname + location.search);
      }
    }
    this.list.replaceChildren(...replicas.map((replica) => this.#entry(replica)));
  }

  /** @param {Replica} replica */
  #entry({ name, alive, silent }) {
    const words = !alive ? 'does not answer' : silent ? 'is silent' : 'alive';
    const well = alive && !silent;
    const link = name !== this.me && alive ? this.#pages.get(name) : undefined;
    const shown = link ? make('a', { href: link }, bdi(name)) : bdi(name);
    return make('li', { class: well ? 'pill' : 'pill gone', 'data-name': name }, make('span', { 'aria-hidden': 'true' }, well ? '●' : '○'), ' ', shown, ` ${words}`);
  }

  /** Where else this page can be had. */
  elsewhere() {
    return [...this.#pages].filter(([name]) => name !== this.me);
  }
}

/**
 * Says that the stream broke off, and where to go on. A page may not listen to another replica: it is another origin.
 * @param {Replicas} replicas
 */
export function sayBroken(replicas) {
  const place = byId('link-state');
  const others = replicas.elsewhere().flatMap(([name, page]) => [' ', make('a', { class: 'button', href: page }, 'Go on at replica ', bdi(name))]);
  place.replaceChildren('Replica ', bdi(replicas.me), ' does not answer; trying again. What you see may be old.', ...others);
  place.hidden = false;
}

export function sayConnected() {
  byId('link-state').hidden = true;
}

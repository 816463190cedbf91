// The one event stream of the page: open while the page is seen, closed while it is hidden (a browser opens six
// connections to a host, for all its tabs together). A stream that is opened anew first tells how the room stands, so
// it does not matter where the last one ended.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

const EVENTS = ['hello', 'step', 'ended', 'seats', 'wallets', 'audit', 'switches', 'race', 'replicas', 'gap'];

/** Tells each event by its name, as a CustomEvent whose `detail` is its data; and `open` and `broken`. */
export class Stream extends EventTarget {
  /** @type {EventSource | null} */ #source = null;
  #failures = 0;
  #timer = 0;

  /** @param {string} address */
  constructor(address) {
    super();
    this.address = address;
  }

  start() {
    document.addEventListener('visibilitychange', () => this.#seenOrHidden());
    // A page that is kept for the way back must hold no connection.
    window.addEventListener('pagehide', () => this.#close());
    window.addEventListener('pageshow', () => this.#seenOrHidden());
    this.#seenOrHidden();
  }

  /** Whether it is there. */
  get isOpen() {
    return this.#source?.readyState === EventSource.OPEN;
  }

  /** After a silence it may be dead without knowing. */
  reopen() {
    this.#close();
    this.#seenOrHidden();
  }

  #seenOrHidden() {
    if (document.visibilityState === 'hidden') {
      this.#close();
    } else if (!this.#source) {
      this.#open();
    }
  }

  #open() {
    this.#close();
    const source = new EventSource(this.address);
    this.#source = source;
    source.addEventListener('open', () => {
      this.#failures = 0;
      this.dispatchEvent(new Event('open'));
    });
    source.addEventListener('error', () => this.#broke(source));
    for (const name of EVENTS) {
      source.addEventListener(name, (event) => this.#pass(name, event));
    }
  }

  /** @param {string} name @param {MessageEvent} event */
  #pass(name, event) {
    this.dispatchEvent(new CustomEvent(name, { detail: JSON.parse(event.data) }));
  }

  /**
   * The browser would come back by itself, but all pages at the same moment, and for ever at the same pace.
   * @param {EventSource} source
   */
  #broke(source) {
    if (source !== this.#source) {
      return;
    }
    this.#close();
    this.#failures += 1;
    this.dispatchEvent(new CustomEvent('broken', { detail: this.#failures }));
    this.#timer = window.setTimeout(() => this.#seenOrHidden(), pause(this.#failures, Math.random()));
  }

  #close() {
    window.clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}

/**
 * How long to wait after so many failures in a row, in milliseconds: twice as long each time, up to a limit, and no two
 * pages the same.
 * @param {number} failures
 * @param {number} chance from 0 to 1
 */
export function pause(failures, chance) {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1)) * (0.5 + chance);
}

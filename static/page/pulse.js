// A replica that sleeps closes no connection: its stream is just quiet. So after a while without a word it is asked.

const QUIET_FOR = 5_000;
const ANSWERS_WITHIN = 2_500;
const LOOK_EVERY = 1_000;

/** Tells `gone` when the replica does not answer, and `back` when it does again and nothing was heard before. */
export class Pulse extends EventTarget {
  #heard = Date.now();
  #asking = false;
  #gone = false;

  start() {
    window.setInterval(() => void this.#look(), LOOK_EVERY);
  }

  /** Something came from the replica. */
  heard() {
    this.#heard = Date.now();
    this.#gone = false;
  }

  async #look() {
    const quiet = Date.now() - this.#heard > QUIET_FOR;
    if (!quiet || this.#asking || document.visibilityState === 'hidden') {
      return;
    }
    this.#asking = true;
    try {
      await fetch('/healthz', { signal: AbortSignal.timeout(ANSWERS_WITHIN) });
      const back = this.#gone;
      this.heard();
      if (back) {
        this.dispatchEvent(new Event('back'));
      }
    } catch {
      this.#gone = true;
      this.dispatchEvent(new Event('gone'));
    } finally {
      this.#asking = false;
    }
  }
}

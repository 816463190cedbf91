// What is asked for is at best as new as the asking; what is heard while the answer is on its way is newer.

export class Meanwhile {
  /** @type {Set<(() => void)[]>} what was heard since each of the questions that are open */ #open = new Set();

  /** Does what follows from something heard: now, and again over each answer that is still on its way. @param {() => void} does */
  hears(does) {
    for (const heard of this.#open) {
      heard.push(does);
    }
    does();
  }

  /**
   * Asks, shows the answer, and over it what was heard since it was asked for.
   * @template T
   * @param {() => Promise<T>} ask that ends within some time
   * @param {(answer: T) => void} show
   */
  async asks(ask, show) {
    /** @type {(() => void)[]} */
    const heard = [];
    this.#open.add(heard);
    try {
      show(await ask());
      heard.forEach((does) => does());
    } finally {
      this.#open.delete(heard);
    }
  }
}

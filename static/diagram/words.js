// Words and numbers of the diagram. Pure: no page is needed.

const FIRST_STRONG_ISOLATE = '\u2068';
const POP_ISOLATE = '\u2069';

/**
 * A name that people typed, fenced in so that its direction of writing disturbs nothing around it.
 * @param {string} text
 */
export function isolate(text) {
  return FIRST_STRONG_ISOLATE + text + POP_ISOLATE;
}

/**
 * Milliseconds as seconds, exact enough to tell two steps apart.
 * @param {number} ms
 */
export function seconds(ms) {
  return `${(Math.max(0, ms) / 1000).toFixed(3)} s`;
}

/**
 * Tokens are long: some lock systems begin with a time. What they share at the front tells nobody anything.
 * @param {Iterable<number | null | undefined>} tokens
 * @returns {(token: number) => string}
 */
export function tokenNames(tokens) {
  const texts = [...new Set([...tokens].filter((token) => token != null).map(String))];
  const shared = texts.length > 1 ? sharedFront(texts) : Math.max(0, (texts[0]?.length ?? 0) - 6);
  const cut = Math.max(0, Math.min(shared, ...texts.map((text) => text.length - 4)));
  return (token) => (cut > 3 ? `…${String(token).slice(cut)}` : String(token));
}

/** @param {string[]} texts */
function sharedFront(texts) {
  const [first, ...others] = texts;
  let length = 0;
  while (length < first.length && others.every((other) => other.length === first.length && other[length] === first[length])) {
    length += 1;
  }
  return length;
}

/**
 * `seat/A1` is seat A1, `wallet/alice` is the wallet of alice.
 * @param {string} row
 */
export function rowName(row) {
  const slash = row.indexOf('/');
  const [table, name] = [row.slice(0, slash), row.slice(slash + 1)];
  return table === 'seat' || table === 'wallet' ? `${table} ${isolate(name)}` : row;
}

/** @param {string} row */
export function shortRowName(row) {
  return row.slice(row.indexOf('/') + 1);
}

/**
 * `1 seat`, `2 seats`.
 * @param {number} n
 * @param {string} what
 */
export function count(n, what) {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

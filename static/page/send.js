// Asking this replica for something, and what it answers when it does not want to.

/** In milliseconds: who begins no answer within this time does not answer. */
const SOON = 5_000;

/** A problem document of the API, or no answer at all. */
export class Problem extends Error {
  /** @param {{title?: string, detail?: string, type?: string}} document @param {number} status */
  constructor({ title = 'No answer', detail = '', type = '' }, status) {
    super(detail ? `${title}: ${detail}` : title);
    this.status = status;
    this.word = type.split('/').at(-1) ?? '';
  }
}

/**
 * @param {string} address
 * @param {RequestInit} [options]
 * @returns {Promise<any>} the JSON of the answer
 */
export async function ask(address, options = {}) {
  const response = await answer(address, { ...options, headers: { accept: 'application/json', ...options.headers } });
  return response.json();
}

/**
 * @param {string} address
 * @returns {Promise<Document>}
 */
export async function askForPage(address) {
  const response = await answer(address, { headers: { accept: 'text/html' } });
  return new DOMParser().parseFromString(await response.text(), 'text/html');
}

/**
 * @param {string} method
 * @param {string} address
 * @param {unknown} body
 */
export function send(method, address, body) {
  return ask(address, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

/**
 * Sends a form as it would be sent without a script.
 * @param {string} address
 * @param {FormData} fields
 */
export function sendForm(address, fields) {
  const pairs = [...fields].map(([name, value]) => [name, String(value)]);
  return ask(address, { method: 'POST', body: new URLSearchParams(pairs) });
}

/**
 * Why an address is not answered as it should be, or null if it is. The answer itself is not read: it may have no end.
 * @param {string} address
 * @returns {Promise<Problem | null>}
 */
export async function whyNot(address) {
  try {
    const response = await answer(address, { signal: AbortSignal.timeout(SOON) });
    await response.body?.cancel();
    return null;
  } catch (problem) {
    return /** @type {Problem} */ (problem);
  }
}

/** @param {string} address @param {RequestInit} options */
async function answer(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Problem({ detail: 'this replica does not answer' }, 0);
  }
  if (!response.ok) {
    throw new Problem(await response.json().catch(() => ({ title: `Status ${response.status}` })), response.status);
  }
  return response;
}

// The wallets: what they hold, and what they should hold.

import { byId, make, setText } from '../page/dom.js';

/** @typedef {{wallet: string, balance: string, expected?: string | null}} Wallet */

/** The rows by the names of their wallets. */
function byName() {
  return new Map([...byId('wallets').querySelectorAll('.balances tbody tr')].map((row) => [row.querySelector('bdi')?.textContent ?? '', row]));
}

/** Whether the page has these wallets, and no others. @param {Wallet[]} wallets */
export function hasWallets(wallets) {
  const rows = byName();
  return wallets.length === rows.size && wallets.every(({ wallet }) => rows.has(wallet));
}

/** @param {Wallet[]} wallets */
export function changeWallets(wallets) {
  const rows = byName();
  for (const wallet of wallets) {
    const row = rows.get(wallet.wallet);
    if (row) {
      changeOne(row, wallet);
    }
  }
}

/** @param {Element} row @param {Wallet} wallet */
function changeOne(row, { balance, expected }) {
  const off = expected != null && expected !== balance;
  const should = row.children[1];
  setText(row.children[2], signed(balance));
  row.classList.toggle('wrong', off);
  const words = off ? `✗ should be ${signed(expected)}` : 'as it should be';
  if (should.textContent?.trim() === words) {
    return;
  }
  should.replaceChildren(...(off ? [make('span', { 'aria-hidden': 'true' }, '✗ '), `should be ${signed(expected)}`] : [make('span', { class: 'quiet' }, words)]));
}

/**
 * The sum, as the audit tells it.
 * @param {{money: {opened: string, now: string}, wallets: unknown[]}} audit
 */
export function changeSum({ money, wallets }) {
  const opened = money.opened === money.now ? 'as opened' : `opened with ${signed(money.opened)}`;
  const summary = byId('wallets').querySelector('h2 span');
  setText(summary, `· together ${signed(money.now)}, ${opened}`);
  summary?.classList.toggle('is-wrong', money.opened !== money.now || wallets.length > 0);
}

/** With a real minus sign. @param {string} amount */
export function signed(amount) {
  return amount.replace('-', '−');
}

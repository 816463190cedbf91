// A load run as it goes on: the page asks for itself again and changes what differs. Without this script it is shown
// anew every two seconds.

import { announce } from './page/announce.js';
import { byId } from './page/dom.js';
import { morph } from './page/morph.js';

const AGAIN_MS = 1000;

async function look() {
  const answer = await fetch('/load', { signal: AbortSignal.timeout(10 * AGAIN_MS) });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const then = page.getElementById('main');
  if (answer.ok && then) {
    morph(byId('main'), then);
    const headline = document.getElementById('last-headline');
    if (headline) {
      announce('load', headline.textContent ?? '');
    }
  }
}

async function follow() {
  while ('underWay' in byId('main').dataset) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    // A replica that does not answer may do so the next time.
    await look().catch(() => {});
  }
}

void follow();

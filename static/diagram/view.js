// The diagram on the page: the sentence, the drawing, what is pointed at, zoom, and saving it.

import { make, setText } from '../page/dom.js';
import { MOST_DRAWN, meetings, mostTelling } from './choose.js';
import { draw } from './draw.js';
import { explain } from './explain.js';
import { mermaid } from './mermaid.js';
import { plan } from './plan.js';
import { asFile, save } from './save.js';
import { tell } from './story.js';
import { count, rowName } from './words.js';

/** @typedef {import('./story.js').Race} Race */

const WIDEST_ZOOM = 64;
const NARROW = 640;

const HINT = 'Point at, tap or walk with the arrow keys to a step to see what it was.';

export class Diagram {
  /** @type {Race | null} */ #race = null;
  /** @type {string | undefined} */ #row;
  #zoom = 1;
  /** @type {import('./draw.js').Drawing | null} */ #drawing = null;
  #picked = -1;

  /**
   * @param {HTMLElement} place an empty element
   * @param {{room: string}} of
   */
  constructor(place, { room }) {
    this.place = place;
    this.room = room;
    this.sentence = make('p', { class: 'cause' });
    this.left = make('p', { class: 'quiet' });
    this.lens = make('button', { type: 'button', class: 'button small', onclick: () => this.#zoomToOverlap() }, 'Where two overlap');
    this.choice = make('select', { 'aria-label': 'Which attempts are drawn', onchange: () => this.#choose() });
    this.names = make('div', { class: 'lane-names' });
    this.scroll = make('div', { class: 'chart-scroll', tabindex: 0, role: 'group', 'aria-label': 'Sequence diagram', onkeydown: (event) => this.#key(event) });
    this.detail = make('p', { class: 'detail' }, HINT);
    place.replaceChildren(this.sentence, this.#tools(), make('div', { class: 'drawing' }, this.names, this.scroll), this.detail, legend());
    for (const event of ['pointerover', 'focusin', 'click']) {
      this.scroll.addEventListener(event, (happened) => this.#pick(/** @type {Element} */ (happened.target).closest?.('.item')));
    }
    let width = 0;
    new ResizeObserver(() => {
      if (place.clientWidth !== width) {
        width = place.clientWidth;
        this.#draw();
      }
    }).observe(place);
  }

  /**
   * @param {Race} race
   * @param {{live?: boolean}} [how] live: while it runs, when no cause can be told yet
   */
  show(race, { live = false } = {}) {
    const isShown = this.live === false && this.#race?.records[0]?.attempt === race.records[0]?.attempt;
    if (!live && isShown) {
      // Asked for once more: its zoom stays, and the focus in it.
      return;
    }
    if (!live && this.#race !== race) {
      this.#zoom = 1;
      this.#row = undefined;
    }
    this.#race = race;
    this.live = live;
    this.place.hidden = race.records.length === 0;
    // A race is known by any of its attempts.
    const id = race.records[0]?.attempt ?? '';
    this.link.setAttribute('href', `/rooms/${encodeURIComponent(this.room)}?race=${encodeURIComponent(id)}#race`);
    this.#offerChoice(race);
    this.#draw();
  }

  #tools() {
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ does) =>
      make('button', { type: 'button', class: 'button small', 'aria-label': label, title: label, onclick: does }, text);
    this.link = make('a', {}, 'Link to this race');
    return make(
      'div',
      { class: 'tools' },
      button('−', 'Zoom out', () => this.#zoomTo(this.#zoom / 2)),
      button('+', 'Zoom in', () => this.#zoomTo(this.#zoom * 2)),
      button('Fit', 'Fit the whole race in', () => this.#zoomTo(1)),
      this.lens,
      this.choice,
      this.left,
      make(
        'span',
        { class: 'saving' },
        button('SVG', 'Save as SVG', () => this.#saveSvg()),
        button('Mermaid', 'Save as Mermaid', () => this.#saveMermaid()),
        this.link,
      ),
    );
  }

  /** @param {Race} race */
  #offerChoice(race) {
    const all = meetings(race);
    this.choice.hidden = race.records.length <= MOST_DRAWN;
    if (this.choice.hidden) {
      setText(this.left, '');
      return;
    }
    const said = ({ row, records, committed }) => `${rowName(row)}: ${count(records.length, 'attempt')}, ${committed} committed`;
    const options = all.map((meeting) => make('option', { value: meeting.row, selected: meeting.row === this.#row }, said(meeting)));
    this.choice.replaceChildren(make('option', { value: '' }, 'the most telling'), ...options);
    this.choice.value = this.#row ?? '';
  }

  #choose() {
    this.#row = this.choice.value || undefined;
    this.#draw();
  }

  #draw() {
    const race = this.#race;
    if (!race || race.records.length === 0 || this.place.clientWidth === 0) {
      return;
    }
    const records = mostTelling(race, this.#row);
    if (records.length < race.records.length) {
      setText(this.left, `${records.length} of ${race.records.length} attempts are drawn, those that met at the same seats; the table below has all.`);
    }
    const whole = tell(race);
    this.story = tell({ ...race, records });
    // What is drawn is explained, unless nothing went wrong in it and something did elsewhere.
    const told = this.#row || this.story.violations.length > 0 ? this.story : whole;
    setText(this.sentence, this.live ? 'The race is running…' : explain(told));
    this.sentence.classList.toggle('wrong', !this.live && whole.violations.length > 0);
    this.lens.hidden = Boolean(this.live) || this.story.overlaps.length === 0;
    const enlarged = Number(getComputedStyle(this.place).getPropertyValue('--enlarged')) || 1;
    const all = this.place.clientWidth / enlarged;
    const gutter = all < NARROW ? 92 : 138;
    this.#drawing = draw(plan(this.story), { width: Math.max(240, (all - gutter) * this.#zoom), gutter, enlarged });
    this.names.replaceChildren(this.#drawing.names);
    this.scroll.replaceChildren(this.#drawing.chart);
  }

  /** @param {number} zoom */
  #zoomTo(zoom) {
    const before = this.#zoom;
    this.#zoom = Math.min(WIDEST_ZOOM, Math.max(1, zoom));
    const middle = (this.scroll.scrollLeft + this.scroll.clientWidth / 2) / before;
    const hadFocus = this.scroll.contains(document.activeElement) && document.activeElement !== this.scroll;
    this.#draw();
    this.scroll.scrollLeft = middle * this.#zoom - this.scroll.clientWidth / 2;
    if (hadFocus) {
      this.#focus(this.#picked);
    }
  }

  /** What matters is often a moment at the end of a long wait: the overlaps, and what was written after them. */
  #zoomToOverlap() {
    const { overlaps = [], attempts = [], length = 0 } = this.story ?? {};
    const from = Math.min(...overlaps.map((overlap) => overlap.from));
    const to = Math.max(...overlaps.flatMap((overlap) => overlap.attempts.map((index) => attempts[index].end)));
    const margin = (to - from) / 6;
    this.#zoomTo(length / (to - from + 2 * margin));
    this.scroll.scrollLeft = this.#drawing?.x(from - margin) ?? 0;
  }

  #items() {
    const items = [...this.scroll.querySelectorAll('.item')];
    return items.sort((a, b) => Number(a.getAttribute('data-at')) - Number(b.getAttribute('data-at')));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.#items().length - 1;
    const inside = document.activeElement !== this.scroll;
    const keys = {
      ArrowRight: () => this.#focus(inside ? this.#picked + 1 : 0),
      ArrowLeft: () => this.#focus(inside ? this.#picked - 1 : last),
      Home: () => this.#focus(0),
      End: () => this.#focus(last),
      '+': () => this.#zoomTo(this.#zoom * 2),
      '-': () => this.#zoomTo(this.#zoom / 2),
      0: () => this.#zoomTo(1),
    };
    const does = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (does) {
      event.preventDefault();
      does();
    }
  }

  /** @param {number} index */
  #focus(index) {
    const items = this.#items();
    const item = /** @type {SVGElement | undefined} */ (items[Math.min(items.length - 1, Math.max(0, index))]);
    item?.focus();
    item?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }

  /** @param {Element | null | undefined} item */
  #pick(item) {
    if (!item) {
      return;
    }
    this.#picked = this.#items().indexOf(item);
    this.scroll.querySelector('.picked')?.classList.remove('picked');
    item.classList.add('picked');
    setText(this.detail, `${item.getAttribute('aria-label')}.`);
  }

  #saveSvg() {
    if (this.#drawing) {
      const { names, chart } = this.#drawing;
      save(`${this.#fileName()}.svg`, 'image/svg+xml', asFile(names, chart, this.sentence.textContent ?? ''));
    }
  }

  #saveMermaid() {
    if (this.story) {
      save(`${this.#fileName()}.mmd`, 'text/plain', mermaid(this.story, this.sentence.textContent ?? ''));
    }
  }

  #fileName() {
    return `doublebook-${this.room}-${this.#race?.race ?? 'race'}`;
  }
}

function legend() {
  const entry = (/** @type {string} */ kind, /** @type {string} */ text) => make('li', {}, make('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' }), text);
  return make(
    'ul',
    { class: 'legend', 'aria-label': 'What the shapes mean' },
    entry('lease', 'lease, with its token'),
    entry('section', 'critical section'),
    entry('overlap', 'two in it at once'),
    entry('pause', 'paused'),
    entry('wait', 'waits'),
  );
}

// The sold seats as a list beside the map, for whom a map is no help. It is drawn only while it is open.

import { make, setText } from '../page/dom.js';

const MOST_LISTED = 500;

/** @param {import('./seat_map.js').SeatMap} map */
export function makeList(map) {
  const summary = make('summary');
  const list = make('ul', { class: 'seat-list' });
  const fold = make('details', { class: 'as-list' }, summary, list);
  map.table.closest('form')?.after(fold);

  let due = false;
  const draw = () => {
    due = false;
    const sold = map.sold();
    setText(summary, `The seats that are sold, as a list (${sold.length})`);
    if (fold.open) {
      const rest = sold.length > MOST_LISTED ? [make('li', {}, `and ${sold.length - MOST_LISTED} more`)] : [];
      list.replaceChildren(...sold.slice(0, MOST_LISTED).map(entry), ...rest);
    }
  };
  const soon = () => {
    if (!due) {
      due = true;
      requestAnimationFrame(draw);
    }
  };
  fold.addEventListener('toggle', soon);
  map.addEventListener('changed', soon);
  draw();
}

/** The words of a cell, which name the seat, how often it was sold and to whom. @param {Element} cell */
function entry(cell) {
  const words = [...cell.childNodes].map((node) => (node instanceof HTMLElement && node.classList.contains('hidden') ? node.textContent ?? '' : node.cloneNode(true)));
  return make('li', { class: cell.classList.contains('often') ? 'is-wrong' : '' }, ...words);
}

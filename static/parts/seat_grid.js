// The seat map as a grid: one stop for the tab key, arrow keys within, row and column headers read out.
// https://www.w3.org/WAI/ARIA/apg/patterns/grid/

/** @param {import('./seat_map.js').SeatMap} map */
export function makeGrid(map) {
  const { table } = map;
  table.setAttribute('role', 'grid');
  table.setAttribute('aria-label', 'Seats');
  table.setAttribute('aria-readonly', 'true');
  // The grid is a stop itself, so what scrolls around it needs to be none.
  table.closest('.scroll')?.removeAttribute('tabindex');
  for (const cell of table.tBodies[0].querySelectorAll('td')) {
    stop(cell).tabIndex = -1;
  }
  let current = table.tBodies[0].querySelector('td');
  if (current) {
    stop(current).tabIndex = 0;
  }

  /** @param {HTMLTableCellElement} cell */
  const moveTo = (cell) => {
    if (current) {
      stop(current).tabIndex = -1;
    }
    current = cell;
    stop(cell).tabIndex = 0;
  };

  table.addEventListener('focusin', (event) => {
    const cell = /** @type {Element} */ (event.target).closest('td');
    if (cell && cell !== current) {
      moveTo(cell);
    }
  });
  table.addEventListener('keydown', (event) => {
    const cell = /** @type {Element} */ (event.target).closest('td');
    const next = cell && target(table, cell, event);
    if (next) {
      event.preventDefault();
      moveTo(next);
      stop(next).focus();
      next.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
  });
  map.addEventListener('cell', (event) => {
    const { cell, hadFocus } = /** @type {CustomEvent} */ (event).detail;
    stop(cell).tabIndex = cell === current ? 0 : -1;
    if (stop(cell) !== cell) {
      cell.removeAttribute('tabindex');
    }
    if (hadFocus) {
      stop(cell).focus({ preventScroll: true });
    }
  });
}

/**
 * What takes the focus in a cell: its button, or the cell itself where there is nothing to press.
 * @param {HTMLTableCellElement} cell
 * @returns {HTMLElement}
 */
function stop(cell) {
  return cell.querySelector('button') ?? cell;
}

/** @param {HTMLTableElement} table @param {HTMLTableCellElement} cell @param {KeyboardEvent} event */
function target(table, cell, event) {
  const rows = table.tBodies[0].rows;
  const row = /** @type {HTMLTableRowElement} */ (cell.parentElement);
  const at = (/** @type {number} */ y, /** @type {number} */ x) => {
    const there = rows[Math.max(0, Math.min(rows.length - 1, y))]?.cells;
    return there?.[Math.max(1, Math.min(there.length - 1, x))];
  };
  const [y, x, last] = [row.sectionRowIndex, cell.cellIndex, row.cells.length - 1];
  if (event.altKey || event.metaKey) {
    return undefined;
  }
  switch (event.key) {
    case 'ArrowRight':
      return at(y, x + 1);
    case 'ArrowLeft':
      return at(y, x - 1);
    case 'ArrowDown':
      return at(y + 1, x);
    case 'ArrowUp':
      return at(y - 1, x);
    case 'Home':
      return at(event.ctrlKey ? 0 : y, 1);
    case 'End':
      return at(event.ctrlKey ? rows.length - 1 : y, last);
    case 'PageDown':
      return at(y + 10, x);
    case 'PageUp':
      return at(y - 10, x);
    default:
      return undefined;
  }
}

// Tables are sorted by the button in the head of a column: first, other way round, and as they were. Equal rows keep
// their order; rows stay under the heading that they stand under.
const WAYS = { number: ['descending', 'ascending', 'none'], words: ['ascending', 'descending', 'none'] };
const words = new Intl.Collator('en', { numeric: true });

// The first number in a cell, in units of 10^-12; null for a cell without one.
function amount(cell) {
  const found = /[-\u2212]?\d[\d\u202f]*(?:\.\d+)?/.exec(cell.textContent);
  if (!found) return null;
  const [whole, part = ''] = found[0].replace(/\u202f/g, '').replace('\u2212', '-').split('.');
  return BigInt(whole + part.padEnd(12, '0').slice(0, 12));
}

function compared(left, right, sign) {
  if (left === null || right === null) return (left === null) - (right === null);
  if (typeof left === 'string') return sign * words.compare(left, right);
  return sign * ((left > right) - (left < right));
}

function sort(table, place, way) {
  for (const body of table.tBodies) {
    body.before_ ??= [...body.rows];
    const heads = body.before_.filter(row => row.classList.contains('group'));
    const rows = body.before_.filter(row => !row.classList.contains('group'));
    if (way !== 'none') {
      const numeric = table.tHead.rows[0].cells[place].classList.contains('number');
      const keys = new Map(rows.map(row => [row, numeric ? amount(row.cells[place]) : row.cells[place].textContent.trim()]));
      const sign = way === 'ascending' ? 1 : -1;
      rows.sort((a, b) => compared(keys.get(a), keys.get(b), sign));
    }
    body.append(...heads, ...rows);
  }
}

function turn(button) {
  const head = button.closest('th'), table = head.closest('table');
  const ways = WAYS[head.classList.contains('number') ? 'number' : 'words'];
  const way = ways[(ways.indexOf(head.getAttribute('aria-sort')) + 1) % ways.length];
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  if (way !== 'none') head.setAttribute('aria-sort', way);
  sort(table, head.cellIndex, way);
  say(way === 'none' ? 'Order as written' : `Sorted by ${button.textContent}, ${way}`);
}

function sortable(table) {
  if (!table.tHead || ![...table.tBodies].some(body => body.rows.length > (body.querySelector('.group') ? 2 : 1))) return;
  for (const head of table.tHead.rows[0].cells) {
    if (!head.textContent.trim()) continue;
    const button = make('button', { type: 'button', class: 'sort' });
    button.append(...head.childNodes);
    head.append(button);
  }
}

document.addEventListener('click', event => {
  const button = event.target.closest('button.sort');
  if (button) turn(button);
});

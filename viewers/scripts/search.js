// Search over panels, headings, tables, their rows, and sentences: every word of the question must stand in what is
// found or, of tables, in the names of their columns; what holds all words itself comes first. What is found is shown as
// text, cut to a line.
const MOST = 40;
const PLAIN = /^[\x00-\x7f\u00b7\u00d7\u2013\u2014\u2192\u2212\u2264\u2265]*$/;
const flat = text => (PLAIN.test(text) ? text : text.normalize('NFKD').replace(/\p{Mn}/gu, '')).toLowerCase();
const APART = new Set(['DT', 'DD', 'DIV', 'LI', 'P', 'TD', 'TH', 'UL']);
let places = null;

// `about` is where it stands, `beside` the names of its columns, both flat.
function place(node, kind, text, about = flat(kind), beside = '') {
  const shown = text.trim().replace(/\s+/g, ' ').slice(0, 4000);
  return { node, kind, shown, sought: flat(shown), about, beside };
}

// Text of a node, apart where it stands apart, without buttons to copy.
function spaced(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (!node.firstElementChild) return node.textContent;
  let text = '';
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (child.nodeType === Node.TEXT_NODE) text += child.data;
    else if (!child.classList.contains('copy')) text += APART.has(child.tagName) ? ` ${spaced(child)} ` : spaced(child);
  }
  return text;
}

function cellsOf(row) {
  let text = '';
  for (let cell = row.firstElementChild; cell; cell = cell.nextElementSibling) text += (text && ' \u00b7 ') + spaced(cell);
  return text;
}

function placesOf(table, panel) {
  const caption = table.caption.firstChild.textContent, heads = [...table.tHead.rows[0].cells].map(head => head.textContent);
  const columns = flat(heads.join(' ')), found = [place(table.caption, panel, caption, flat(panel), columns)];
  for (const body of table.tBodies) {
    let kind = caption, about = flat(kind);
    for (let row = body.firstElementChild; row; row = row.nextElementSibling) {
      if (row.className === 'group') about = flat(kind = `${caption} \u00b7 ${row.textContent}`);
      else found.push(place(row, kind, cellsOf(row), about, columns));
    }
  }
  return found;
}

// Read once, when somebody begins to search: headings first, then tables with their rows, then what else is said.
function read() {
  unpackAll();
  const found = [[], [], []];
  for (const panel of panels) {
    const title = panel.querySelector('h2').textContent;
    const all = (selector, rank) => panel.querySelectorAll(selector).forEach(node => found[rank].push(place(node, title, spaced(node))));
    found[0].push(place(panel.querySelector('h2'), 'Panel', title));
    all('h3, h4', 0);
    panel.querySelectorAll('table').forEach(table => found[1].push(...placesOf(table, title)));
    all('p:not(.download), dl.facts > div, summary, figcaption, .unchecked li, .identities li, article .text', 2);
  }
  return found.flat();
}

function found(question) {
  places ??= read();
  const asked = flat(question).split(/\s+/).filter(Boolean);
  if (!asked.length) return [];
  const direct = ({ sought, about }) => asked.every(word => sought.includes(word) || about.includes(word));
  const hits = places.filter(hit => direct(hit) || asked.every(word => `${hit.sought} ${hit.about} ${hit.beside}`.includes(word)));
  return [...hits.filter(direct), ...hits.filter(hit => !direct(hit))];
}

// What is shown of a hit: from a little before the first word that was asked for.
function snippet(shown, asked) {
  const lower = shown.toLowerCase(), at = Math.min(...asked.map(word => lower.indexOf(word)).filter(place => place >= 0));
  const from = at > 60 && at < Infinity ? Math.max(0, shown.lastIndexOf(' ', at - 30)) : 0;
  return (from ? '… ' : '') + shown.slice(from, from + 400).trim();
}

function answer(field) {
  const list = byId('found'), hits = found(field.value), nothing = !field.value.trim();
  const asked = flat(field.value).split(/\s+/).filter(Boolean);
  byId('found-count').textContent = nothing ? '' : `${hits.length || 'Nothing'} found` + (hits.length > MOST ? `, first ${MOST} shown` : '');
  list.replaceChildren(...hits.slice(0, MOST).map(({ node, kind, shown }) => {
    const button = make('button', { type: 'button' }, make('bdi', { class: 'kind' }, kind), make('bdi', {}, snippet(shown, asked)));
    button.addEventListener('click', () => { visit(node, node.matches('h2') ? 'start' : 'center'); flash(node); });
    return make('li', {}, button);
  }));
  list.closest('nav').classList.toggle('searching', !nothing);
}

function flash(node) {
  document.querySelector('.found-here')?.classList.remove('found-here');
  node.classList.add('found-here');
}

function move(event) {
  const field = byId('search'), stops = [field, ...byId('found').querySelectorAll('button')];
  const now = stops.indexOf(document.activeElement), way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === 'Escape') {
    field.value = '';
    answer(field);
    document.querySelector('.found-here')?.classList.remove('found-here');
    field.focus();
  } else if (event.key === 'Enter' && now === 0) stops[1]?.click();
  else if (way && now + way >= 0) stops[now + way]?.focus();
  else return;
  event.preventDefault();
}

if (byId('search')) {
  const box = byId('search').closest('.search');
  box.hidden = false;
  byId('search').addEventListener('focus', () => { places ??= read(); });
  byId('search').addEventListener('input', event => answer(event.target));
  box.addEventListener('keydown', move);
}

// Search over panels, headings, tables, their rows, and sentences: every word of the question must stand in what is
// found or, of tables, in the names of their columns; what holds all words itself comes first. What is found is shown as
// text, cut to a line.
const MOST = 40;
const flat = text => text.normalize('NFKD').replace(/\p{Mn}/gu, '').toLowerCase();
let places = null;

function place(node, kind, text, beside = '') {
  const shown = text.trim().replace(/\s+/g, ' ').slice(0, 4000);
  const sought = flat(`${kind} ${shown}`);
  return { node, kind, shown, sought, around: `${sought} ${beside}` };
}

// Text of a node, apart where it stands apart, without buttons to copy.
function spaced(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.classList?.contains('copy')) return '';
  return [...node.childNodes].map(spaced).join(/^(DT|DD|DIV|LI|P|TD|TH|UL)$/.test(node.tagName) ? ' ' : '');
}

function placesOf(table, panel) {
  const caption = table.caption.firstChild.textContent, heads = [...table.tHead.rows[0].cells].map(head => head.textContent);
  const columns = flat(heads.join(' ')), found = [place(table.caption, panel, caption, columns)];
  for (const body of table.tBodies) {
    let kind = caption;
    for (const row of body.rows) {
      if (row.classList.contains('group')) kind = `${caption} \u00b7 ${row.textContent}`;
      else found.push(place(row, kind, [...row.cells].map(spaced).join(' \u00b7 '), columns));
    }
  }
  return found;
}

// Read once, when somebody begins to search: headings first, then tables with their rows, then what else is said.
function read() {
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
  const hits = places.filter(({ around }) => asked.every(word => around.includes(word)));
  const direct = ({ sought }) => asked.every(word => sought.includes(word));
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

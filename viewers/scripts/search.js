// Search over panels, headings, tables and their rows: every word of the question must stand in what is found. What is
// found is shown as text, cut to a line.
const MOST = 40;
const flat = text => text.normalize('NFKD').replace(/\p{Mn}/gu, '').toLowerCase();
let places = null;

function titled(node) {
  const panel = node.closest('main > section');
  return panel ? panel.querySelector('h2').textContent : '';
}

function place(node, kind, text) {
  const shown = text.trim().replace(/\s+/g, ' ').slice(0, 400);
  return { node, kind, shown, sought: flat(`${kind} ${shown}`) };
}

// Read once, when somebody begins to search: headings first, then tables, then rows.
function read() {
  const of = (selector, name) => [...document.querySelectorAll(selector)].map(node => place(node, ...name(node)));
  const parts = cell => [...cell.childNodes].map(part => part.textContent).join(' ');
  const cells = row => [...row.cells].map(parts).join(' \u00b7 ');
  return [
    ...of('main h2', node => ['Panel', node.textContent]),
    ...of('main h3, main h4, main summary', node => [titled(node), node.textContent]),
    ...of('main caption', node => [titled(node), node.textContent.replace(/ (exact|sampled|sketched)$/, '')]),
    ...of('main dl.facts > div', node => [titled(node), node.textContent]),
    ...of('main tbody tr:not(.group)', node => [node.closest('table').caption.firstChild.textContent, cells(node)]),
    ...of('main .look, main .opening, main .note', node => [titled(node), node.textContent]),
  ];
}

function found(question) {
  places ??= read();
  const asked = flat(question).split(/\s+/).filter(Boolean);
  return asked.length ? places.filter(({ sought }) => asked.every(word => sought.includes(word))) : [];
}

function answer(field) {
  const list = byId('found'), hits = found(field.value), nothing = !field.value.trim();
  byId('found-count').textContent = nothing ? '' : `${hits.length || 'Nothing'} found` + (hits.length > MOST ? `, first ${MOST} shown` : '');
  list.replaceChildren(...hits.slice(0, MOST).map(({ node, kind, shown }) => {
    const button = make('button', { type: 'button' }, make('bdi', { class: 'kind' }, kind), make('bdi', {}, shown));
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

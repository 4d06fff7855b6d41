// The step inspector: a step's rows with their documents, and the steps that read a document. Everything it needs
// stands in the links of its panel; it is read when first asked for.
const SHOWN = 4;
const ROWS = 1000;
let inspected = null;

// What the panel's links hold: the plan, and of the caches that are listed where each document begins.
function load() {
  if (inspected) return inspected;
  const words = hex => BigInt(`0x${hex.match(/../g).reverse().join('')}`);
  const keys = records(held(document.querySelector('.plan-keys .download a'))).map(row => row.at(-1)).map(key => [words(key.slice(0, 16)), words(key.slice(16))]);
  const packings = [];
  for (const [number, , ...piece] of byId('steps-packed') ? records(held(byId('steps-packed'))) : []) {
    const [chunk, start, tokens] = piece.map(BigInt), packing = (packings[number] ??= new Map());
    packing.set(chunk, [...(packing.get(chunk) ?? []), [start, start + tokens]]);
  }
  const plan = new Plan(exactly(held(byId('steps-plan'))), keys, packings);
  const caches = plan.components.map(() => null), ids = new Map();
  for (const [number, , start, id] of byId('steps-documents') ? records(held(byId('steps-documents'))) : []) {
    const cache = (caches[number] ??= { starts: [], ids: [] });
    ids.set(id, [Number(number), cache.ids.length]);
    cache.starts.push(BigInt(start));
    cache.ids.push(id);
  }
  inspected = { plan, caches, ids };
  return inspected;
}

// The last document that begins at or before a token.
function documentAt(starts, token) {
  let low = 0, high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= token) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Ids of the documents in a row, null where the page does not list those of its component.
function documentsOf(row) {
  const cache = load().caches[row.component];
  if (!cache || !row.spans) return null;
  return row.spans.flatMap(([start, stop]) => cache.ids.slice(documentAt(cache.starts, start), documentAt(cache.starts, stop - 1n) + 1));
}

function explain(step) {
  const { plan } = load();
  return plan.step(BigInt(step)).map(row => ({ ...row, name: plan.components[row.component].name, documents: documentsOf(row) }));
}

// The rows of steps that read a document: a list for each pass that gets there.
function seen(id) {
  const { plan, caches, ids } = load();
  if (!ids.has(id)) return null;
  const [component, place] = ids.get(id), { starts } = caches[component];
  const stop = starts[place + 1] ?? plan.components[component].tokens;
  return { component: plan.components[component].name, rows: plan.reading(component, starts[place], stop) };
}

function grid(caption, columns, rows) {
  const head = columns.map(([name, style]) => make('th', { scope: 'col', class: style }, name));
  const body = rows.map(row => make('tr', {}, ...row.map((cell, at) => {
    return at ? make('td', { class: columns[at][1] }, cell) : make('th', { scope: 'row', class: columns[0][1] }, cell);
  })));
  const table = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...body));
  sortable(table);
  return make('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' }, table);
}

function listed(ids) {
  if (ids === null) return 'not listed on this page';
  const items = ids.map(id => make('li', {}, make('a', { href: `#document-${id}` }, make('code', {}, id))));
  const list = make('ul', { class: 'ids' }, ...items.slice(0, SHOWN));
  if (ids.length <= SHOWN) return list;
  const rest = make('ul', { class: 'ids' }, ...items.slice(SHOWN));
  return make('div', {}, list, make('details', {}, make('summary', {}, `${ids.length - SHOWN} more`), rest));
}

const visible = name => [...name].slice(0, 120).join('').replace(HIDDEN, mark => {
  return `[U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;
});

function showStep(number) {
  const { plan } = load();
  if (!/^\d{1,18}$/.test(number) || BigInt(number) >= plan.steps) {
    return [make('p', { class: 'note' }, `Steps go from 0 to ${grouped(plan.steps - 1n)}.`)];
  }
  const rows = explain(number), [first] = rows;
  const caption = `Step ${grouped(BigInt(number))}, phase ${visible(first.phase)}: sequences ${grouped(first.sequence)} to ${grouped(rows.at(-1).sequence)}`;
  const columns = [['Row', 'words'], ['Component', 'words'], ['Pass', 'number'], ['Chunk', 'number'], ['First token', 'number'], ['Tokens', 'number'], ['Documents', 'words']];
  return [grid(caption, columns, rows.slice(0, ROWS).map((row, at) => [
    String(at), visible(row.name), grouped(row.epoch), grouped(row.chunk), row.spans ? grouped(row.spans[0][0]) : '–', row.spans ? grouped(row.spans.reduce((sum, [start, stop]) => sum + stop - start, 0n)) : '–', listed(row.documents),
  ]))];
}

function showDocument(id) {
  const answer = seen(id);
  if (!answer) return [make('p', { class: 'note' }, 'No document with this id is among those listed: it was not trained on, or its component is not listed here.')];
  const rows = [], caption = `Steps that read document ${id} of ${visible(answer.component)}`;
  for (const row of answer.rows) {
    if (rows.push([row.step, row.row, row.epoch, row.chunk]) === ROWS) break;
  }
  rows.sort((one, other) => (one[0] === other[0] ? Number(one[1] - other[1]) : one[0] < other[0] ? -1 : 1));
  const columns = [['Step', 'number'], ['Row', 'number'], ['Pass', 'number'], ['Chunk', 'number']];
  if (!rows.length) return [make('p', { class: 'note' }, `No step reads this document of ${visible(answer.component)}: the plan ends before.`)];
  return [grid(caption, columns, rows.map(([step, ...row]) => [make('a', { href: `#step-${step}` }, grouped(step)), ...row.map(grouped)]))];
}

function inspect(show, value, address) {
  const wanted = value.trim().replace(/[\s\u202f,]/g, '').toLowerCase();
  byId('inspected').replaceChildren(...show(wanted));
  byId('inspected').querySelectorAll('.ids code').forEach(copyable);
  say(byId('inspected').querySelector('caption, p').textContent);
  history.replaceState(null, '', `#${address}-${encodeURIComponent(wanted)}`);
}

function go(way) {
  const field = byId('step-number'), { plan } = load();
  const now = /^\d{1,18}$/.test(field.value) ? BigInt(field.value) + BigInt(way) : 0n;
  field.value = String(now < 0n ? 0n : least(now, plan.steps - 1n));
  inspect(showStep, field.value, 'step');
}

// An address like #step-120 or #document-0a1b… opens the inspector there.
function address() {
  const [, kind, value] = /^#(step|document)-([0-9a-f]{1,32})$/.exec(location.hash) ?? [];
  if (!kind || !byId('inspector')) return;
  byId(kind === 'step' ? 'step-number' : 'document-id').value = value;
  inspect(kind === 'step' ? showStep : showDocument, value, kind);
  byId('inspector').scrollIntoView();
}

// Once its panel is there.
function equip() {
  if (!byId('inspector')?.hidden) return;
  byId('inspector').hidden = false;
  const enter = (field, show, name) => field?.addEventListener('keydown', event => {
    if (event.key === 'Enter') inspect(show, field.value, name);
  });
  enter(byId('step-number'), showStep, 'step');
  enter(byId('document-id'), showDocument, 'document');
  byId('show-step').addEventListener('click', () => inspect(showStep, byId('step-number').value, 'step'));
  byId('step-back').addEventListener('click', () => go(-1));
  byId('step-on').addEventListener('click', () => go(1));
  byId('show-document')?.addEventListener('click', () => inspect(showDocument, byId('document-id').value, 'document'));
  addEventListener('hashchange', address);
  // For the console: curate.explain(12), [...curate.seen("0a1b…").rows].
  globalThis.curate = Object.freeze({ explain, seen });
}

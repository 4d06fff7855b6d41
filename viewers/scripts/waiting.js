// Pieces of a long page wait as text in <noscript> (viewers/waiting.py) until they are made into elements: one by one when
// nothing else is to do, or at once for an address, a search, a print.
const slots = () => [...document.querySelectorAll('main noscript')];
const idle = globalThis.requestIdleCallback ?? (later => setTimeout(later, 10));

// The piece that holds the place `name`; of steps and documents the inspector.
function slotOf(name) {
  const wanted = ` id="${/^(step|document)-[0-9a-f]{1,32}$/.test(name) ? 'inspector' : make('i', { id: name }).outerHTML.slice(7, -6)}"`;
  return slots().find(slot => slot.textContent.includes(wanted));
}

function unpack(slot) {
  const made = make('template');
  made.innerHTML = slot.textContent;
  prepare(made.content);
  slot.replaceWith(made.content);
  equip();
}

function prepare(part) {
  part.querySelectorAll('table').forEach(sortable);
  part.querySelectorAll('.digest code, .facts code, .colophon code, .ids code').forEach(copyable);
}

function unpackAll() {
  slots().forEach(unpack);
}

function next() {
  const [slot] = slots();
  if (!slot) return;
  unpack(slot);
  idle(next);
}

addEventListener('beforeprint', unpackAll);
prepare(document);
equip();

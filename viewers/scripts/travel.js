// From panel to panel by keyboard, and to a place by its address. Single letters can be switched off (WCAG 2.1.4).
const panels = [...document.querySelectorAll('main > section')];

function open(node) {
  for (let at = node; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
}

function visit(node, block = 'start') {
  open(node);
  if (!node.hasAttribute('tabindex')) node.setAttribute('tabindex', '-1');
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block });
}

function step(way) {
  const tops = panels.map(panel => panel.getBoundingClientRect().top);
  const now = tops.filter(top => top < 40).length - 1;
  const next = panels[Math.min(Math.max(now + way, 0), panels.length - 1)];
  if (!next) return;
  history.replaceState(null, '', `#${next.id}`);
  visit(next.querySelector('h2'));
}

const KEYS = { '/': () => byId('search')?.focus(), j: () => step(1), k: () => step(-1) };

document.addEventListener('keydown', event => {
  const typing = event.target.closest('input, textarea, select, [contenteditable]');
  const own = event.ctrlKey || event.metaKey || event.altKey || typing || byId('single-keys')?.checked === false;
  if (own || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// What the address names: where that still waits, it is made, and the browser asked to go there once more.
function arrive() {
  const name = decodeURIComponent(location.hash.slice(1));
  const inside = byId(name)?.querySelectorAll('noscript') ?? [slotOf(name)].filter(Boolean);
  inside.forEach(unpack);
  if (inside.length) location.replace(location.href);
  const place = byId(name);
  if (place) open(place);
  if (place?.tagName === 'TR' || place?.closest('details')) place.scrollIntoView();
  aim = { place, until: performance.now() + SETTLING };
  settle();
}

// A place stays where it is while what lies above it gets its height, unless the reader moves meanwhile.
const SETTLING = 1500;
let aim = {};
function settle() {
  const { place, until, top } = aim;
  if (!place) return;
  if (place.getBoundingClientRect().top !== top) {
    place.scrollIntoView();
    aim.top = place.getBoundingClientRect().top;
  }
  if (performance.now() < until) requestAnimationFrame(settle);
}
for (const kind of ['wheel', 'touchmove', 'pointerdown', 'keydown']) {
  addEventListener(kind, () => { aim = {}; }, { capture: true, passive: true });
}

addEventListener('hashchange', arrive);

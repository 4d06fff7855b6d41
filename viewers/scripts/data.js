// Reading what the page holds in its own links (data: addresses), and making elements: text stays text.
const byId = name => document.getElementById(name);

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A change that a screen reader should speak of.
function say(sentence) {
  const line = byId('said');
  if (line) line.textContent = sentence;
}

function held(link) {
  const [head, body] = [link.href.slice(0, link.href.indexOf(',')), link.href.slice(link.href.indexOf(',') + 1)];
  if (!head.endsWith(';base64')) return decodeURIComponent(body);
  return new TextDecoder().decode(Uint8Array.from(atob(decodeURIComponent(body)), letter => letter.charCodeAt(0)));
}

// JSON whose integers come out as BigInt, whatever their size.
function exactly(json) {
  const marked = json.replace(/"(?:[^"\\]|\\.)*"|-?\d+/g, part => (part[0] === '"' ? part : `{"n":"${part}"}`));
  return JSON.parse(marked, (_, value) => (value && typeof value.n === 'string' ? BigInt(value.n) : value));
}

function records(csv) {
  const rows = [[]];
  for (const [, quoted, bare, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1).push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    if (end === '\n') rows.push([]);
    else if (end === '') break;
  }
  return rows.slice(1).filter(row => row.length > 1);
}

const grouped = number => number.toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');

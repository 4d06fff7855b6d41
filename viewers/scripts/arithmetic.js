// The loader's arithmetic (mixtures/schedule.py, permutation.py, lookup.py): which sequence of which component the i-th
// sequence of a plan is, and back. All integers are BigInt, so nothing is rounded; 64-bit products wrap as they do there.
const GOLDEN = 0x9E3779B97F4A7C15n;
const low64 = value => BigInt.asUintN(64, value);
const least = (a, b) => (a < b ? a : b);

function mix(value) {
  value = low64((value ^ (value >> 30n)) * 0xBF58476D1CE4E5B9n);
  value = low64((value ^ (value >> 27n)) * 0x94D049BB133111EBn);
  return value ^ (value >> 31n);
}

function evenRoot(size) {
  let root = BigInt(Math.floor(Math.sqrt(Number(size))));
  while (root * root < size) root += 1n;
  while (root > 1n && (root - 1n) * (root - 1n) >= size) root -= 1n;
  return root + (root & 1n);
}

// The order of a component's `size` sequences in one pass: a bijection of range(size), keyed by the words of `key`.
class Pass {
  constructor(size, key, epoch) {
    this.size = size;
    this.rows = evenRoot(size);
    this.columns = (size + this.rows - 1n) / this.rows;
    const state = mix(mix(low64(key[0] + (epoch + 1n) * GOLDEN)) ^ key[1]);
    this.keys = Array.from({ length: size < 256n ? 32 : 12 }, (_, turn) => mix(low64(state + (BigInt(turn) + 1n) * GOLDEN)));
  }

  addend(half, turn, modulus) {
    return ((mix(half ^ this.keys[turn]) >> 22n) * modulus) >> 42n;
  }

  at(index) {
    do {
      let row = index / this.columns, column = index % this.columns;
      for (let turn = 0; turn < this.keys.length; turn += 2) {
        row = (row + this.addend(column, turn, this.rows)) % this.rows;
        column = (column + this.addend(row, turn + 1, this.columns)) % this.columns;
      }
      index = row * this.columns + column;
    } while (index >= this.size);
    return index;
  }

  index(value) {
    do {
      let row = value / this.columns, column = value % this.columns;
      for (let turn = this.keys.length - 2; turn >= 0; turn -= 2) {
        column = (column + this.columns - this.addend(row, turn + 1, this.columns)) % this.columns;
        row = (row + this.rows - this.addend(column, turn, this.rows)) % this.rows;
      }
      value = row * this.columns + column;
    } while (value >= this.size);
    return value;
  }
}

// In what order a phase draws its components: a Huffman tree over their counts; `leaves` are [member, count].
class Schedule {
  constructor(leaves) {
    let open = leaves.map(([member, weight], place) => ({ member, weight, place, parent: null }));
    for (let made = 0; open.length > 1; made += 1) {
      const right = Schedule.lightest(open), left = Schedule.lightest(open);
      const node = { left, right, weight: left.weight + right.weight, place: leaves.length + made + 1, parent: null };
      left.parent = right.parent = node;
      open.push(node);
    }
    this.root = open[0];
  }

  static lightest(open) {
    let best = 0;
    open.forEach((node, at) => {
      const other = open[best];
      if (node.weight < other.weight || (node.weight === other.weight && node.place < other.place)) best = at;
    });
    return open.splice(best, 1)[0];
  }

  static toLeft(node, count) {
    return (count * node.left.weight + node.weight / 2n) / node.weight;
  }

  draw(index) {
    let node = this.root;
    while (node.left) {
      const before = Schedule.toLeft(node, index);
      [node, index] = Schedule.toLeft(node, index + 1n) > before ? [node.left, before] : [node.right, index - before];
    }
    return [node.member, index];
  }

  leaves() {
    const found = [], open = [this.root];
    while (open.length) {
      const node = open.pop();
      if (node.left) open.push(node.left, node.right);
      else found.push(node);
    }
    return found;
  }

  // How often each member is drawn among the first `length`.
  drawn(length) {
    const found = new Map(), open = [[this.root, length]];
    while (open.length) {
      const [node, count] = open.pop();
      if (!node.left) found.set(node.member, count);
      else open.push([node.left, Schedule.toLeft(node, count)], [node.right, count - Schedule.toLeft(node, count)]);
    }
    return found;
  }

  // Where `leaf` is drawn for the time `number` (from 0).
  index(leaf, number) {
    for (let node = leaf; node.parent; node = node.parent) {
      const { left, weight } = node.parent, half = weight / 2n;
      if (node === left) {
        const asked = (number + 1n) * weight - half;
        number = (asked + left.weight - 1n) / left.weight - 1n;
      } else {
        const rest = weight - left.weight;
        number = ((number + 1n) * weight - (weight - 1n - half) + rest - 1n) / rest - 1n;
      }
    }
    return number;
  }
}

// A compiled plan, from the fields of plan.json with integers as BigInt, and two 64-bit words for each component.
class Plan {
  // `packings` are of packed sequences: by component, chunk → [[start, stop], …]; null where the page does not know.
  constructor(fields, keys, packings) {
    const { batch, components, sequences: { kind, length } } = fields;
    Object.assign(this, { batch, components, length, keys, packings: kind === 'chunks' ? null : packings });
    const at = new Map(fields.components.map((component, index) => [component.name, index]));
    const drawn = fields.components.map(() => 0n);
    let start = 0n;
    this.segments = fields.segments.map(segment => {
      const names = Object.keys(segment.counts).sort(Plan.byCodePoint);
      const schedule = new Schedule(names.map(name => [at.get(name), segment.counts[name]]));
      const part = { phase: segment.phase, start, stop: start + segment.drawn_length, schedule, before: [...drawn] };
      schedule.drawn(segment.drawn_length).forEach((count, member) => { drawn[member] += count; });
      start = part.stop;
      return part;
    });
    this.draws = drawn;
    this.steps = start / this.batch;
    this.passes = new Map();
  }

  static byCodePoint(a, b) {
    const left = [...a], right = [...b];
    for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
      if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
    }
    return left.length - right.length;
  }

  pass(index, epoch) {
    const name = `${index} ${epoch}`;
    if (!this.passes.has(name)) {
      if (this.passes.size > 4096) this.passes.clear();
      this.passes.set(name, new Pass(this.components[index].sequences, this.keys[index], epoch));
    }
    return this.passes.get(name);
  }

  sequence(number) {
    const part = this.segments.find(segment => number < segment.stop);
    const [index, within] = part.schedule.draw(number - part.start);
    const { tokens, sequences } = this.components[index], draw = part.before[index] + within;
    const epoch = draw / sequences, chunk = this.pass(index, epoch).at(draw % sequences);
    const spans = this.packings ? (this.packings[index]?.get(chunk) ?? null) : [[chunk * this.length, least((chunk + 1n) * this.length, tokens)]];
    return { sequence: number, phase: part.phase, component: index, epoch, chunk, spans };
  }

  // The chunks of a component that hold any of the tokens from `start` to before `stop`.
  chunks(index, start, stop) {
    if (!this.packings) return Array.from({ length: Number((stop - 1n) / this.length - start / this.length) + 1 }, (_, at) => start / this.length + BigInt(at));
    const holds = ([, spans]) => spans.some(([from, to]) => from < stop && to > start);
    return [...this.packings[index]].filter(holds).map(([chunk]) => chunk).sort((a, b) => Number(a - b));
  }

  // The rows of a step, as `curate explain` has them.
  step(step) {
    return Array.from({ length: Number(this.batch) }, (_, row) => this.sequence(step * this.batch + BigInt(row)));
  }

  // The rows of steps that read any of the tokens from `start` to before `stop` of a component, pass by pass.
  * reading(index, start, stop) {
    const { sequences } = this.components[index];
    for (let epoch = 0n; epoch * sequences < this.draws[index]; epoch += 1n) {
      for (const chunk of start < stop ? this.chunks(index, start, stop) : []) {
        const number = this.find(index, epoch * sequences + this.pass(index, epoch).index(chunk));
        if (number !== null) yield { step: number / this.batch, row: number % this.batch, epoch, chunk };
      }
    }
  }

  find(index, draw) {
    for (const part of this.segments) {
      for (const leaf of part.schedule.leaves()) {
        const within = draw - part.before[index];
        if (leaf.member === index && within >= 0n && within < leaf.weight) {
          const number = part.start + part.schedule.index(leaf, within);
          if (number < part.stop) return number;
        }
      }
    }
    return null;
  }
}

// The shares of all sub-layers, and the walks over them: see analysis/information_flow.py.

const numbers = plane => new Float32Array(plane.slice().buffer);
const halves = plane => new Uint16Array(plane.slice().buffer);

// One attention: the edges of all layers row by row, and where each row begins.
function partOf(data, name, queries, keys) {
  const {planes} = data, counts = halves(planes[`${name}.counts`]);
  const begins = new Int32Array(counts.length + 1);
  counts.forEach((count, row) => { begins[row + 1] = begins[row] + count; });
  const heads = planes[`${name}.heads`], edges = begins[counts.length];
  return {
    name, queries, keys, begins,
    key: halves(planes[`${name}.keys`]),
    share: numbers(planes[`${name}.shares`]),
    head: heads.length === edges ? heads : halves(heads),
    residual: numbers(planes[`${name}.residual`]),
    value: new Float64Array(edges),
  };
}

export function flowOf(data) {
  const stacks = data.stacks.map((stack, at) => ({
    ...stack, at, count: stack.tokens.length,
    mlp: data.planes[`${stack.name}.mlp`] && numbers(data.planes[`${stack.name}.mlp`]),
  }));
  for (const stack of stacks) {
    stack.parts = stack.parts.map(name =>
      partOf(data, name, stack.at, name.endsWith("cross_attn") ? 0 : stack.at));
    stack.streams = new Float64Array((stack.layers + 1) * stack.count);
    stack.through = new Float64Array(stack.layers * stack.count);
  }
  return {stacks, starts: data.planes.starts && numbers(data.planes.starts)};
}

// A share of nothing: importance stays with the residual stream.
const orNone = share => Number.isNaN(share) ? 0 : share;
const orAll = share => Number.isNaN(share) ? 1 : share;

// What an attention wrote of a new residual stream: nothing where that is patched, without any share.
export const wroteIn = ({begins, residual}, row) =>
  residual[row] === 0 && begins[row] === begins[row + 1] ? 0 : 1 - residual[row];

// Backwards from an answer: importance of streams, of edges and of feed-forward layers.
export function backwards(flow, answer) {
  const {stacks, starts} = flow, last = stacks.length - 1;
  for (const stack of stacks) for (const part of stack.parts) part.value.fill(0);
  const given = stacks.map(stack => new Float64Array(stack.count));
  for (let i = 0; i < stacks[last].count; i++) {
    given[last][i] = starts ? starts[answer * stacks[last].count + i] : Number(i === answer);
  }
  for (let s = last; s >= 0; s--) {
    const stack = stacks[s], n = stack.count;
    let here = given[s].slice();
    stack.streams.set(here, stack.layers * n);
    for (let layer = stack.layers - 1; layer >= 0; layer--) {
      const past = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        const through = stack.mlp ? here[i] * orNone(stack.mlp[layer * n + i]) : 0;
        stack.through[layer * n + i] = through;
        if (stack.parallel) { past[i] = through; here[i] -= through; }
      }
      for (const part of [...stack.parts].reverse()) here = split(part, stacks, given, here, layer, n);
      for (let i = 0; i < n; i++) stack.streams[layer * n + i] = here[i] += past[i];
    }
  }
}

function split(part, stacks, given, here, layer, n) {
  const before = new Float64Array(n), to = part.keys === part.queries ? before : given[part.keys];
  for (let i = 0; i < n; i++) {
    const row = layer * n + i;
    before[i] += here[i] * orAll(part.residual[row]);
    if (!here[i]) continue;
    for (let e = part.begins[row]; e < part.begins[row + 1]; e++) {
      to[part.key[e]] += part.value[e] = here[i] * part.share[e];
    }
  }
  return before;
}

// Forwards from a token: how much of every stream is traced to it, and by which edges.
export function forwards(flow, from, token) {
  const {stacks} = flow;
  for (const stack of stacks) {
    const n = stack.count;
    let here = new Float64Array(n);
    if (stack.at === from) here[token] = 1;
    stack.streams.set(here, 0);
    for (let layer = 0; layer < stack.layers; layer++) {
      const entered = here;
      for (const part of stack.parts) here = gather(part, stacks, here, layer, n);
      for (let i = 0; i < n; i++) {
        const share = stack.mlp ? orNone(stack.mlp[layer * n + i]) : 0;
        stack.through[layer * n + i] = share * (stack.parallel ? entered : here)[i];
        if (stack.parallel) here[i] = share * entered[i] + (1 - share) * here[i];
      }
      stack.streams.set(here, (layer + 1) * n);
    }
  }
}

function gather(part, stacks, here, layer, n) {
  const after = new Float64Array(n), source = stacks[part.keys];
  const from = part.keys === part.queries ? here : source.streams.subarray(source.layers * source.count);
  for (let i = 0; i < n; i++) {
    const row = layer * n + i;
    after[i] = here[i] * orAll(part.residual[row]);
    for (let e = part.begins[row]; e < part.begins[row + 1]; e++) {
      after[i] += part.value[e] = from[part.key[e]] * part.share[e];
    }
  }
  return after;
}

// The edges between two tokens that carry at least so much, the weakest first.
export function carrying(flow, least) {
  const found = [];
  for (const stack of flow.stacks) for (const part of stack.parts) {
    const n = stack.count, own = part.keys === part.queries;
    for (let row = 0; row < stack.layers * n; row++) {
      for (let e = part.begins[row]; e < part.begins[row + 1]; e++) {
        const query = row % n;
        if (own && part.key[e] === query) continue;
        if (part.value[e] >= least) {
          found.push({part, stack, e, layer: (row - query) / n, query, key: part.key[e], value: part.value[e]});
        }
      }
    }
  }
  return {edges: found.sort((a, b) => a.value - b.value)};
}

// The overview: a small picture for every head, the chosen one framed, one of them large.
// Where there are many layers they go on in another column of layers, beside the first.

// A picture of many rows and few columns is stretched, so that the columns can be seen.
const LARGEST = 96, HIGHEST = 2.5, PREVIEW = 240, APART = 14, WORTH = 1.1, AGAIN = false;

const name = ({data}, [layer, head]) => `${data.words.row} ${layer}, ${data.words.column} ${head}`;

const spoken = (state, cell) =>
  `${name(state, cell)}: ${maximum(state.data.tops[cell[0]][cell[1]])}`;

const sizes = ({data}) => data.shape.slice(0, 2);

// ---- the large head --------------------------------------------------------------------

// Hand a head to the matrix that shows this pass; whether there is one.
function shows({data: {every, planes, shape}}, [layer, head]) {
  if (!every) return false;
  const title = every.title[0] + layer + every.title[1] + head;
  const detail = {of: every.of, at: [layer, head], title, planes: headPlanes(every, planes, layer, shape[1], head)};
  return !document.dispatchEvent(new CustomEvent("explorer-head", {cancelable: true, detail}));
}

// The planes of one head as the server would send them: see encode in matrix/__init__.py.
function headPlanes({size: [queries, keys], steps}, {singles, codes, allowed}, layer, heads, head) {
  const n = queries * keys, from = (layer * heads + head) * n, bytes = Math.ceil(n / 8);
  const mask = allowed.subarray(layer * bytes, (layer + 1) * bytes);
  if (!singles) {
    const half = codes.length / 2, values = new Uint8Array(2 * n);
    values.set(codes.subarray(from, from + n));
    values.set(codes.subarray(half + from, half + from + n), n);
    return {values, allowed: mask};
  }
  const exact = singles.slice(4 * from, 4 * (from + n)), values = new Uint8Array(2 * n);
  new Float32Array(exact.buffer).forEach((value, i) => {
    const code = codeOf(value, steps);
    values[i] = code & 255;
    values[n + i] = code >> 8;
  });
  return {values, exact, allowed: mask};
}

// The code of a weight, a half rounded to even: see encode in wire.py.
function codeOf(value, steps) {
  if (Number.isNaN(value)) return ABSENT;
  const at = value * steps, code = at % 1 === 0.5 ? 2 * Math.round(at / 2) : Math.round(at);
  return Math.min(steps, value > 0 ? Math.max(1, code) : 0);
}

// ---- where everything stands --------------------------------------------------------

function layout({data, stage, ink, canvas}) {
  const [layers, heads, queries, keys] = data.shape;
  const width = stage.clientWidth, height = stage.clientHeight;
  const pen = canvas.getContext("2d");
  pen.font = `12px ${ink.sans}`;
  const first = Math.ceil(pen.measureText(data.words.row + " ↓").width) + 14, top = 40;
  pen.font = `12px ${ink.mono}`;
  const number = Math.ceil(pen.measureText(String(layers - 1)).width) + 10 + APART;
  const tall = Math.max(0.01, Math.min(HIGHEST, queries / Math.max(1, keys)));
  const among = columns => {
    const rows = Math.ceil(layers / columns), step = Math.floor((height - top) / rows);
    const share = Math.floor((width - first - (columns - 1) * number) / (columns * heads));
    const gap = Math.max(2, Math.min(8, Math.round(Math.min(share, step) / 8)));
    const wide = Math.min(share - gap, (step - gap) / tall, LARGEST / Math.max(1, tall));
    return {rows, gap, w: Math.max(4, Math.floor(wide))};
  };
  let best = among(1);
  for (let columns = 2; columns <= layers; columns++) {
    const other = among(columns);
    if (other.w > WORTH * best.w) best = other;
  }
  const {rows, gap, w} = best, h = Math.max(4, Math.round(w * tall));
  const across = heads * (w + gap) + number, columns = Math.ceil(layers / rows);
  const right = first + columns * across - number, room = width - right >= PREVIEW;
  const scale = Math.min(208 / keys, Math.max(60, Math.min(208, height - top)) / queries);
  return {left: first, top, w, h, gap, rows, across, right, room,
    large: {x: right + 32, y: top, w: Math.max(keys * scale, queries * scale / HIGHEST), h: queries * scale}};
}

// The upper left corner of a head.
const corner = ({left, top, w, h, gap, rows, across}, [layer, head]) =>
  [left + Math.floor(layer / rows) * across + head * (w + gap), top + layer % rows * (h + gap)];

function hit(state, event) {
  const at = state.place;
  if (!at) return null;
  const box = state.canvas.getBoundingClientRect(), [layers, heads] = state.data.shape;
  const x = event.clientX - box.left - at.left + at.gap / 2;
  const y = event.clientY - box.top - at.top + at.gap / 2;
  const column = Math.floor(x / at.across), row = Math.floor(y / (at.h + at.gap));
  const head = Math.floor((x - column * at.across) / (at.w + at.gap)), layer = column * at.rows + row;
  const inside = x >= 0 && y >= 0 && row < at.rows && head < heads && layer < layers;
  return inside ? [layer, head] : null;
}

// ---- painting -----------------------------------------------------------------------

// Every picture at one pixel a cell, side by side.
function atlas(state) {
  const [layers, heads, queries, keys] = state.data.shape;
  const image = new ImageData(Math.max(1, heads * keys), Math.max(1, layers * queries));
  let from = 0;
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
    for (let q = 0; q < queries; q++) {
      let p = 4 * ((layer * queries + q) * image.width + head * keys);
      for (let k = 0; k < keys; k++, p += 4) {
        const colour = shadeOf(state, from++);
        image.data[p] = colour[0];
        image.data[p + 1] = colour[1];
        image.data[p + 2] = colour[2];
        image.data[p + 3] = 255;
      }
    }
  }
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function paint(state) {
  const {data, ink, stage, canvas, place} = state;
  if (!place) return;
  const [pen] = sized(canvas, stage.clientWidth, stage.clientHeight);
  const [layers, heads, queries, keys] = data.shape, {left, top, w, h, gap, rows} = place;
  const shown = state.hovered || state.walked || state.selected;
  const draw = ([layer, head], x, y, wide, high) => {
    pen.imageSmoothingEnabled = wide < keys;
    pen.drawImage(state.atlas, head * keys, layer * queries, keys, queries, x, y, wide, high);
    pen.strokeStyle = css(ink.border);
    pen.lineWidth = 1;
    pen.strokeRect(x - 0.5, y - 0.5, wide + 1, high + 1);
  };
  const frame = (cell, colour, thick) => {
    const out = thick / 2 + 1, [x, y] = corner(place, cell);
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(x - out, y - out, w + 2 * out, h + 2 * out);
  };
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      draw([layer, head], ...corner(place, [layer, head]), w, h);
    }
  }
  if (state.selected) frame(state.selected, css(ink.accent), 2.5);
  if (shown && !same(shown, state.selected)) frame(shown, css(ink.text), 1.5);

  pen.textBaseline = "middle";
  const label = (text, x, y, align, strong) => {
    pen.textAlign = align;
    pen.font = `${strong ? "600 " : ""}12px ${ink.mono}`;
    pen.fillStyle = css(strong ? ink.text : ink.muted);
    pen.fillText(text, x, y);
  };
  const every = size => Math.max(1, Math.ceil(16 / size));
  const isShown = (layer, head) => shown && (head === null ? shown[0] === layer
    : shown[1] === head && Math.floor(shown[0] / rows) === Math.floor(layer / rows));
  for (let first = 0; first < layers; first += rows) {
    const last = Math.min(layers, first + rows);
    for (let layer = first; layer < last; layer += every(h + gap)) {
      const [x, y] = corner(place, [layer, 0]);
      label(layer, x - 10, y + h / 2, "right", isShown(layer, null));
    }
    for (let head = 0; head < heads; head += every(w + gap)) {
      const [x] = corner(place, [first, head]);
      label(head, x + w / 2, top - 13, "center", isShown(first, head));
    }
  }
  pen.font = `12px ${ink.sans}`;
  pen.fillStyle = css(ink.muted);
  pen.textAlign = "right";
  pen.fillText(data.words.column + " →", left - 10, top - 27);
  pen.fillText(data.words.row + " ↓", left - 10, top - 13);

  if (shown && place.room) {
    const {x, y, w: wide, h: high} = place.large;
    draw(shown, x, y, wide, high);
    pen.textAlign = "left";
    pen.font = `600 12px ${ink.sans}`;
    pen.fillStyle = css(ink.text);
    pen.fillText(name(state, shown), x, y - 13);
  }
  tell(state, shown);
}

function tell(state, shown) {
  const line = state.root.querySelector(".sentence");
  const pointed = state.hovered || state.walked;
  line.classList.toggle("idle", !pointed);
  line.textContent = !shown ? "Point at a head to enlarge it."
    : spoken(state, shown) + (same(shown, state.selected) ? ", chosen" : "; click to open it");
}

// ---- running ------------------------------------------------------------------------

function show(state) {
  const {data, stage, canvas} = state;
  if (!stage.clientWidth) return;
  state.atlas = atlas(state);
  state.place = layout(state);
  const {left, top, w, h, gap, rows, across, room, large} = state.place;
  lift(state, Math.max(top + rows * (h + gap), room && large.y + large.h + 8));
  state.root.dataset.cells = [left, top, w + gap, h + gap].join(" ");
  state.root.dataset.columns = [rows, across].join(" ");
  const n = data.pooled;
  state.root.querySelector(".notes").textContent =
    (n > 1 ? `max over ${n}×${n} cells · ` : "") + "each head has its own colour scale" + greyed(data);
  const [layers, heads] = data.shape, at = i => [Math.floor(i / heads), i % heads];
  const size = `${counted(layers, data.words.row)} by ${counted(heads, data.words.column)}`;
  canvas.setAttribute("aria-label", `${size}. Arrow keys move, Enter opens.`);
  putInWords(state.root, canvas, data.title || size,
    largestOf(layers * heads, i => data.tops[at(i)[0]][at(i)[1]]).map(i => spoken(state, at(i))));
  choose(state);
}

function start(state) {
  make(state);
  state.shows = cell => shows(state, cell);
}

export default publish("explorer_grid", component => mount(component, ".grid", start, show));

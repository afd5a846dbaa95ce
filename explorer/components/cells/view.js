// A table to pick from: a cell is named by pointing, picked by a click or by Enter.

const LABEL = 12, LARGEST_CELL = 40, WITH_NUMBER = 30, SMALL = 10;
// Labels: the widest of a row or of what is pointed at, of every few columns, and of each column.
const WIDEST = 136, WIDE = 60, NARROW = 30, APART = 4;

const AGAIN = true;

const code = ({data, codes}, [row, column]) => codes[row * data.columns.length + column];

// Rounded once where the number itself was sent, like the same number in a sentence of the page.
const known = (state, cell) => state.singles
  ? state.singles[cell[0] * state.data.columns.length + cell[1]]
  : valueOf(code(state, cell), state.data);
const digits = (state, cell) => sent(state, known(state, cell));

function said(state, cell) {
  const {data} = state, value = code(state, cell);
  return [data.words.sentence, {
    row: data.rows[cell[0]],
    column: data.columns[cell[1]],
    value: value === ABSENT ? data.words.absent : `${digits(state, cell)} ${data.words.unit}`,
  }];
}

const spoken = (state, cell) => plain(...said(state, cell));

const sizes = ({data}) => [data.rows.length, data.columns.length];

// ---- where everything stands --------------------------------------------------------

function layout({data, stage, ink, canvas}) {
  const pen = canvas.getContext("2d");
  pen.font = `${LABEL}px ${ink.mono}`;
  const widest = list => list.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
  const across = Math.min(WIDE, widest(data.written[1])) + 2 * APART;
  pen.font = `12px ${ink.sans}`;
  const names = Math.max(pen.measureText(`${data.words.column} →`).width,
    pen.measureText(`${data.words.row} ↓`).width);
  pen.font = `${LABEL}px ${ink.mono}`;
  const left = Math.ceil(Math.max(names, Math.min(WIDEST, widest(data.written[0])))) + 14, top = 40;
  const scale = Math.max(1, window.devicePixelRatio || 1);
  let cell = Math.min((stage.clientWidth - left - 4) / Math.max(1, data.columns.length),
    (stage.clientHeight - top - 4) / Math.max(1, data.rows.length), LARGEST_CELL);
  if (cell * scale >= 2) cell = Math.floor(cell * scale) / scale;
  return {left, top, across, cell: Math.max(cell, 1e-3)};
}

function hit(state, event) {
  const at = state.place;
  if (!at) return null;
  const box = state.canvas.getBoundingClientRect();
  const cell = [Math.floor((event.clientY - box.top - at.top) / at.cell),
    Math.floor((event.clientX - box.left - at.left) / at.cell)];
  return cell.every((x, i) => x >= 0 && x < sizes(state)[i]) ? cell : null;
}

// ---- painting -----------------------------------------------------------------------

function colour({data, ink}, value) {
  const share = Math.max(-1, Math.min(1, value / data.top));
  if (data.scale === "diverging") return ink.diverging[Math.round(127 + 127 * share)];
  return ink.sequential[value > 0 ? Math.max(1, Math.round(255 * share)) : 0];
}

// The cells, once for every change of the numbers or of the size; what is pointed at comes over them.
function fill(state) {
  const {data, ink, stage, place: {left, top, cell}} = state, gap = cell > 8 ? 1 : 0;
  const [pen, scale] = sized(state.picture, stage.clientWidth, stage.clientHeight);
  const blank = hatch(pen, ink, scale);
  Object.assign(pen, {textBaseline: "middle", textAlign: "center", font: `12px ${ink.mono}`});
  data.rows.forEach((_, row) => data.columns.forEach((_, column) => {
    const x = left + column * cell, y = top + row * cell;
    const value = valueOf(code(state, [row, column]), data), is = Number.isFinite(value);
    const filled = is ? colour(state, value) : null;
    pen.fillStyle = is ? css(filled) : blank;
    pen.fillRect(x, y, cell - gap, cell - gap);
    if (cell < WITH_NUMBER || !is) return;
    pen.fillStyle = over(filled);
    pen.fillText(short(known(state, [row, column])), x + (cell - gap) / 2, y + (cell - gap) / 2, cell - 4);
  }));
  pen.strokeStyle = css(ink.border);
  pen.strokeRect(left - 0.5, top - 0.5, data.columns.length * cell + 1, data.rows.length * cell + 1);
}

function paint(state) {
  const {data, ink, stage, canvas, place} = state;
  if (!place) return;
  const width = stage.clientWidth, height = stage.clientHeight, {left, top, cell} = place;
  const [pen] = sized(canvas, width, height);
  pen.drawImage(state.picture, 0, 0, width, height);
  const shown = state.hovered || state.walked;
  const frame = ([row, column], colour, thick) => {
    for (const [stroke, wide] of [[css(ink.background), thick + 2], [colour, thick]]) {
      Object.assign(pen, {strokeStyle: stroke, lineWidth: wide});  // seen on any cell
      pen.strokeRect(left + column * cell - 1, top + row * cell - 1, cell + 1, cell + 1);
    }
    if (cell >= SMALL) return;  // too small to be seen: its row and its column lead to it
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top + row * cell - 0.5, data.columns.length * cell + 1, cell + 1);
    pen.strokeRect(left + column * cell - 0.5, top - 0.5, cell + 1, data.rows.length * cell + 1);
  };
  if (state.selected) frame(state.selected, css(ink.accent), 2.5);
  if (shown) frame(shown, css(ink.text), 1.5);
  pen.textBaseline = "middle";
  labels(state, pen, shown);
  tell(state, shown);
}

// Four digits fit into a cell; the sentence has the number as it was sent.
const short = value => value === 0 ? "0" : value.toFixed(
  Math.max(0, 3 - Math.max(0, Math.floor(Math.log10(Math.abs(value)))))).replace("-", "−");

function labels({data, ink, place, stage, selected}, pen, shown) {
  const {left, top, cell, across} = place, at = shown || selected;
  const write = strong => { pen.font = `${strong ? "600 " : ""}${LABEL}px ${ink.mono}`; };
  const label = (text, x, y, width, align, strong) => {
    write(strong);
    pen.textAlign = align;
    pen.fillStyle = css(strong ? ink.text : ink.muted);
    pen.fillText(isolated(fitted(pen, text, width)), x, y);
  };
  // Every few of them where they are close; the one that is meant in any case, and alone there.
  const some = (list, room, meant, centre, alone, draw) => list.forEach((text, i) => {
    const every = Math.max(1, Math.ceil(room / cell)), place = (i + 0.5) * cell;
    const free = i % every === 0 && !(Math.abs(place - centre) < alone);
    if (i === meant || free) draw(text, i === meant ? centre : place, every * cell, i === meant);
  });
  const [row, column] = at || [NaN, NaN];
  const [beside, over] = data.written;
  some(beside, 15, row, (row + 0.5) * cell, 15, (text, y, _, strong) =>
    label(text, left - 10, top + y, left - 14, "right", strong));
  write(true);
  const half = at ? Math.min(WIDEST, pen.measureText(over[column]).width) / 2 : 0;
  const last = stage.clientWidth - left - APART - half;
  const room = cell >= NARROW + APART ? cell : across;
  some(over, room, column, Math.max(half, Math.min(last, (column + 0.5) * cell)),
    Math.max(room, cell) / 2 + half + APART, (text, x, wide, strong) =>
      label(text, left + x, top - 12, strong ? WIDEST : wide - APART, "center", strong));
  pen.font = `12px ${ink.sans}`;
  pen.fillStyle = css(ink.muted);
  pen.textAlign = "right";
  pen.fillText(data.words.column + " →", left - 10, top - 27);
  pen.fillText(data.words.row + " ↓", left - 10, top - 12);
}

function tell(state, shown) {
  const line = state.root.querySelector(".sentence");
  line.classList.toggle("idle", !shown);
  if (shown) say(line, ...said(state, shown));
  else line.textContent = "Point at a cell to read it; click to choose it.";
}

function legend({root, data, codes, ink}) {
  const place = root.querySelector(".legend"), bar = element("span", "bar");
  const ends = data.scale === "diverging" ? ink.diverging : ink.sequential;
  const stops = [0, 1, 2, 3, 4].map(i => css(ends[Math.round(i / 4 * (ends.length - 1))]));
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const low = data.scale === "diverging" ? -data.top : 0;
  const spec = {low: Math.min(low, 0), high: data.top, steps: 10000};
  place.replaceChildren(element("span", "", number(low, spec)), bar,
    element("span", "", `${number(data.top, spec)} ${data.words.unit}`));
  if (codes.includes(ABSENT)) place.append(element("span", "", `· hatched: ${data.words.absent}`));
}

// ---- running ------------------------------------------------------------------------

function show(state) {
  const {data, stage, canvas} = state;
  if (state.fresh) {
    state.codes = joined(data.planes.values);
    state.singles = singlesOf(data);
    state.fresh = false;
    state.hovered = state.walked = null;
    state.picture ??= document.createElement("canvas");
    const {columns} = data, size = i => state.codes[i] < INFINITE ? Math.abs(valueOf(state.codes[i], data)) : 0;
    putInWords(state.root, canvas, data.words.title, largestOf(state.codes.length, size)
      .map(i => spoken(state, [Math.floor(i / columns.length), i % columns.length])));
  }
  if (!stage.clientWidth) return;
  state.place = layout(state);
  const {left, top, cell} = state.place;
  lift(state, top + data.rows.length * cell + 8);
  state.root.dataset.cells = [left, top, cell, cell].join(" ");
  canvas.setAttribute("aria-label", `${data.words.title}, ${counted(data.rows.length, data.words.row)} by ` +
    `${counted(data.columns.length, data.words.column)}. Arrow keys move, Enter chooses.`);
  legend(state);
  fill(state);
  choose(state);
}

export default publish("explorer_cells", component => mount(component, ".cells", make, show));

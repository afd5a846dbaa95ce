// How the panels look: cells, labels, the legend, what is held.

import {
  bracket, css, element, fitted, hatch, heightOf, inCell, isolated, needs, over, ramp, sized, three,
  unknown,
} from "../shared.js";

const LABEL = 12, WIDEST = 84, HIGHEST_LABEL = 60, WITH_NUMBER = 34, GAP = 14;
// Of both lines: their titles and legends, and what is between them; the share of the line above.
const AROUND = 96, ABOVE = 0.64;
// Presented, the line above has the whole height, at least this many pixels; the other is further down.
const LINE = 48, PRESENTED = 220;
// The largest cells above and below; on a phone the smallest above and the least width of a
// dimension: where it has less, the panels scroll sideways.
const LARGEST = [56, 24], SMALLEST = 14, DIMENSION = 3, PHONE = 560;
// The equation has the smaller letters where it is too wide, down to the smallest that can be read.
const LETTERS = 26, LEAST_LETTERS = 14;

// The matrices above have cells of one size, their rows in line; what is below takes the rest.
export function arrange(state) {
  const {panels, stage, root} = state, first = panels[0], [n, m] = first.size;
  const presents = document.documentElement.matches(".presenting");
  fit(root.querySelector(".equation"), root.clientWidth);
  const all = presents ? Math.max(heightOf(state) - LINE, PRESENTED) : heightOf(state);
  state.band = 14 + Math.min(HIGHEST_LABEL, all / 5, widestOf(state, first, state.data.columns));
  const wide = Math.max(stage.clientWidth, leastOf(state, 0), leastOf(state, 1));
  const room = (wide - margin(state, first) - 3 * GAP) / 4 - 3;
  const line = stage.querySelector(".line0"), high = all - AROUND;
  line.style.gridTemplateColumns = `${margin(state, first) + room + 3}px repeat(3, ${room + 3}px)`;
  stage.querySelector(".line1").style.width = `${wide}px`;
  state.size = even(Math.min(room / m, ((presents ? all : ABOVE * high) - state.band) / n, LARGEST[0]));
  const above = Math.ceil(state.band + n * state.size + 4);
  let below = 0;
  for (const panel of panels) {
    if (!panel.line) {
      panel.frame.style.height = `${above}px`;
      continue;
    }
    const [rows, columns] = panel.size, wide = (panel.frame.clientWidth - margin(state, panel) - 2) / columns;
    const cell = panel.kind === "pair" ? Math.min(wide, LARGEST[1]) : LARGEST[1];
    const needed = Math.min(band(state, panel) + rows * cell + 4, presents ? all : high - above);
    panel.frame.style.height = `${needed}px`;
    below = Math.max(below, needed);
  }
  needs(state, above + below + AROUND);
  const height = presents ? `${root.clientHeight - stage.clientHeight + above + below + AROUND}px` : "";
  root.style.height = height;
  if (presents) root.style.setProperty("--need", height);
}

// What the panels of a line need at their smallest; a wide window shows all of them.
const leastOf = (state, line) => state.stage.clientWidth > PHONE ? 0 : state.panels.filter(panel => panel.line === line).reduce((sum, panel) =>
  sum + margin(state, panel) + panel.size[1] * (line ? DIMENSION : SMALLEST) + GAP + 3, 0);

function fit(equation, width) {
  equation.style.fontSize = "";
  const letters = Math.floor(LETTERS * equation.clientHeight / 64 * width / Math.max(width, equation.scrollWidth));
  equation.style.fontSize = `${Math.max(LEAST_LETTERS, letters)}px`;
}

// The room for the labels of the columns. Below there are none: they stand over the same columns
// above, and what is below begins at one height.
const isLabelled = panel => panel.kind === "pair" && !panel.line;
const band = (state, panel) => isLabelled(panel) ? state.band : 4;

function even(size) {
  const scale = Math.max(1, window.devicePixelRatio || 1);
  return size * scale >= 2 ? Math.floor(size * scale) / scale : size;
}

// The room for the labels of the rows.
function margin(state, panel) {
  return panel.labels ? Math.min(WIDEST, widestOf(state, panel, namesOf(state, panel))) + 10 : 1;
}

function widestOf({ink}, {picture}, names) {
  const pen = picture.getContext("2d");
  pen.font = `600 ${LABEL}px ${ink.mono}`;
  return Math.ceil(names.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0));
}

function place(state, panel) {
  const [n, m] = panel.size, left = margin(state, panel), top = band(state, panel);
  const width = panel.frame.clientWidth - left - 2, height = panel.frame.clientHeight - top - 2;
  if (panel.kind === "pair") {
    const cell = panel.line ? even(Math.min(width / m, height / n, LARGEST[1])) : state.size;
    return {left, top, wide: cell, high: cell};
  }
  return {left, top, wide: width / m, high: even(Math.min(height / n, LARGEST[1]))};
}

const namesOf = ({data}, panel) => panel.kind === "key" ? data.columns : data.rows;

function shade({ink}, panel, value) {
  const share = Math.max(-1, Math.min(1, value / panel.top));
  if (panel.scale === "diverging") return ink.diverging[Math.round(127 + 127 * share)];
  return ink.sequential[value > 0 ? Math.max(3, Math.round(255 * share)) : 0];
}

export function paint(state, panel) {
  const {data, ink} = state, {picture, frame, values, size: [n, m]} = panel;
  const at = panel.place = place(state, panel), {left, top, wide, high} = at;
  const [pen, scale] = sized(picture, frame.clientWidth, frame.clientHeight);
  panel.box.classList.toggle("later", Boolean(panel.hidden));
  legend(state, panel);
  panel.box.dataset.cells = [left, top, wide, high].join(" ");
  if (panel.hidden) {
    pen.setLineDash([4, 4]);
    pen.strokeStyle = css(ink.border);
    pen.strokeRect(left + 0.5, top + 0.5, m * wide - 1, n * high - 1);
    pen.setLineDash([]);
    return;
  }
  const blank = hatch(pen, ink, scale), gap = Math.min(wide, high) >= 8 ? 1 : 0;
  Object.assign(pen, {textBaseline: "middle", textAlign: "center", font: `12px ${ink.mono}`});
  const shown = panel.kind === "pair" && wide >= WITH_NUMBER && n * m <= 600;
  for (let row = 0; row < n; row++) for (let column = 0; column < m; column++) {
    const value = values[row * m + column], is = Number.isFinite(value);
    const x = left + column * wide, y = top + row * high, filled = is ? shade(state, panel, value) : null;
    pen.fillStyle = is ? css(filled) : Number.isNaN(value) ? css(unknown(ink)) : blank;
    pen.fillRect(x, y, wide - gap, high - gap);
    if (!shown) continue;
    pen.fillStyle = is ? over(filled) : css(ink.muted);
    pen.fillText(inCell(value, 3), x + wide / 2, y + high / 2, wide - 4);
  }
  pen.strokeStyle = css(ink.border);
  pen.strokeRect(left - 0.5, top - 0.5, m * wide + 1, n * high + 1);
  labels(state, panel, pen);
  for (const [a, b] of panel.labels ? data.groups[panel.kind === "key" ? 1 : 0] : []) {
    bracket(pen, ink, left - 4, top + a * high, (b + 1 - a) * high, 2);
  }
  for (const [a, b] of isLabelled(panel) ? data.groups[1] : []) {
    bracket(pen, ink, left + a * wide, top - 4, (b + 1 - a) * wide, 2, true);
  }
}

// Every label that has room, also beside those of the row and the column that are shown.
function labels(state, panel, pen, shown = [null, null]) {
  const {wide, high} = panel.place, {size: [n, m], kind} = panel, {muted} = state.data;
  const draw = (count, size, label, special, strong) => {
    const step = Math.max(1, Math.ceil(13 / size)), isFree = at => strong === null || Math.abs(at - strong) * size >= 14;
    for (let at = 0; at < count; at += step) if (isFree(at)) label(state, panel, pen, at, special.includes(at));
    if (strong !== null) label(state, panel, pen, strong, false, true);
  };
  if (panel.labels) draw(n, high, rowLabel, muted[Number(kind === "key")], shown[0]);
  if (isLabelled(panel)) draw(m, wide, columnLabel, muted[1], shown[1]);
}

function rowLabel(state, panel, pen, row, muted, strong = false) {
  const {ink} = state, {left, top, high} = panel.place;
  pen.font = `${strong ? "600 " : ""}${LABEL}px ${ink.mono}`;
  Object.assign(pen, {textAlign: "right", textBaseline: "middle"});
  const y = top + (row + 0.5) * high;
  pen.fillStyle = css(muted && !strong ? ink.muted : ink.text);
  pen.fillText(isolated(fitted(pen, namesOf(state, panel)[row], left - 9)), left - 7, y);
}

function columnLabel(state, panel, pen, column, muted, strong = false) {
  const {ink, data} = state, {left, top, wide} = panel.place;
  pen.font = `${strong ? "600 " : ""}${LABEL}px ${ink.mono}`;
  pen.save();
  pen.translate(left + (column + 0.5) * wide, top - 6);
  pen.rotate(-Math.PI / 2);
  Object.assign(pen, {textAlign: "left", textBaseline: "middle"});
  pen.fillStyle = css(muted && !strong ? ink.muted : ink.text);
  pen.fillText(isolated(fitted(pen, data.columns[column], top - 8)), 0, 0.5);
  pen.restore();
}

// What is held or pointed at: a cell where both are tokens, a row of a vector, its dimension.
export function overlay(state, panel) {
  const {ink} = state, {canvas, picture, frame, place: at, size: [, m]} = panel;
  if (!at) return;
  const width = frame.clientWidth, height = frame.clientHeight;
  const [pen] = sized(canvas, width, height);
  pen.drawImage(picture, 0, 0, width, height);
  const cell = state.cell();
  if (!cell || panel.hidden) return;
  const {left, top, wide, high} = at, row = panel.kind === "key" ? cell.column : cell.row;
  pen.fillStyle = css(ink.background);
  pen.fillRect(0, 0, left - 5, height);
  if (isLabelled(panel)) pen.fillRect(0, 0, width, top - 5);
  labels(state, panel, pen, [row, cell.column]);
  if (panel.kind === "pair") {
    pen.strokeStyle = css(ink.text, 0.35);
    pen.strokeRect(left - 0.5, top + row * high - 0.5, m * wide + 1, high);
    return framed(pen, state, left + cell.column * wide, top + row * high, wide, high);
  }
  framed(pen, state, left, top + row * high, m * wide, high);
  if (state.dim && state.dim.group === panel.group) {
    framed(pen, state, left + state.dim.at * wide, top + row * high, wide, high);
  }
}

function framed(pen, {ink, hovered}, x, y, wide, high) {
  for (const [stroke, thick] of [[css(ink.background), 4], [css(hovered ? ink.text : ink.accent), 2]]) {
    Object.assign(pen, {strokeStyle: stroke, lineWidth: thick});  // seen on any cell
    pen.strokeRect(x - 1, y - 1, wide + 1, high + 1);
  }
  pen.lineWidth = 1;
}

export function legend({ink}, panel) {
  const bar = element("span", "bar");
  const colours = panel.scale === "diverging" ? ink.diverging : ink.sequential;
  bar.style.background = ramp(colours);
  const low = panel.scale === "diverging" ? three(-panel.top) : "0";
  const ends = [element("span", "", low), bar, element("span", "", three(panel.top))];
  const zero = panel.of === "added" ? "0: nothing masked" : "0";
  panel.legend.replaceChildren(...(panel.empty ? [element("span", "", zero)] : ends));
  const isMasked = panel.kind === "pair" && panel.values.some(value => value === -Infinity);
  if (isMasked) panel.legend.append(element("span", "off"), element("span", "", "−∞"));
}

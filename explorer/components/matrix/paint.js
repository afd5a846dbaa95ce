// How the matrix looks: the cells, the labels, what is pointed at, the legend.

import {blank, isHatched, isUnknown, LABEL, leftOut, SMALL, tell} from "./view.js";
import {
  bit, bracket, css, element, fitted, forPointer, hatch, isolated, mixed, number, over, ramp, sized,
  strength, unknown, valueOf,
} from "../shared.js";

// The colour of a cell as an index into 256, or -1 where there is nothing to colour.
// Equal codes have equal colours where the picture has one scale: each is worked out once.
function level(state, i) {
  if (blank(state, i)) return -1;
  const code = state.codes[i];
  if (state.tops) return shade(state.data, code, topOf(state, i));
  if (state.levels[code] === UNKNOWN) state.levels[code] = shade(state.data, code, state.data.top);
  return state.levels[code];
}

const UNKNOWN = -2, CODES = 65536;
export const noLevels = () => new Int16Array(CODES).fill(UNKNOWN);

function shade(data, code, top) {
  const value = valueOf(code, data);
  if (data.scale === "mask") return 150;
  const share = strength(Math.abs(value), top, data.log);
  if (data.scale === "diverging") return Math.round(127 + 127 * Math.sign(value) * share);
  // Only a true zero has the page's colour; the smallest weight is a step above it.
  return value > 0 ? Math.max(3, Math.round(255 * share)) : 0;
}

// What the colours of this cell end at: of the picture, of its row or of its column.
function topOf({data, tops}, i) {
  if (!tops) return data.top;
  return tops[lineOf(data, i)];
}

const lineOf = ({scaling, columns: {length}}, i) => scaling === "row" ? Math.floor(i / length) : i % length;

// The largest size in every row, or in every column; null where the picture has one scale.
export function topsOf(state) {
  const {data, codes} = state;
  if (data.scaling === "all" || data.scale === "mask") return null;
  const tops = new Float64Array((data.scaling === "row" ? data.rows : data.columns).length);
  for (let i = 0; i < codes.length; i++) {
    const at = lineOf(data, i);
    if (!blank(state, i)) tops[at] = Math.max(tops[at], Math.abs(valueOf(codes[i], data)));
  }
  return tops;
}

const coloursOf = ({data, ink}) => data.scale === "diverging" ? ink.diverging : ink.sequential;

// One pixel a cell; where the screen has fewer pixels than cells, the strongest of them.
function cells(state) {
  const {data, place, ink} = state, {n, m} = place, colours = coloursOf(state);
  const across = place.wide * place.scale < 1 ? Math.max(1, Math.floor(place.width * place.scale)) : m;
  const down = place.cell * place.scale < 1 ? Math.max(1, Math.floor(place.height * place.scale)) : n;
  const image = new ImageData(across, down), pixels = image.data;
  const off = mixed(ink.background, ink.text, 0.07), grey = unknown(ink);
  const total = data.rows.length * data.columns.length;
  for (let y = 0; y < down; y++) {
    const y0 = Math.floor(y * n / down), y1 = Math.max(y0 + 1, Math.ceil((y + 1) * n / down));
    for (let x = 0; x < across; x++) {
      const x0 = Math.floor(x * m / across), x1 = Math.max(x0 + 1, Math.ceil((x + 1) * m / across));
      let best = -1, far = -1;
      for (let row = y0; row < y1; row++) {
        for (let column = x0; column < x1; column++) {
          const i = row * m + column, at = i < total ? level(state, i) : -1;
          const away = at < 0 ? -1 : data.scale === "diverging" ? Math.abs(at - 127) : at;
          if (away > far) [best, far] = [at, away];
        }
      }
      const there = y0 * m + x0 < total && isUnknown(state, y0 * m + x0);
      const colour = best >= 0 ? colours[best] : there ? grey : off, p = 4 * (y * across + x);
      pixels[p] = colour[0];
      pixels[p + 1] = colour[1];
      pixels[p + 2] = colour[2];
      pixels[p + 3] = 255;
    }
  }
  const canvas = new OffscreenCanvas(across, down);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// Hatch the cells that may not be looked at, run by run along each row.
function hatched(state, pen) {
  const {place} = state, {n, m, cell, wide} = place;
  let runs = 0;
  pen.beginPath();
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < m; column++) {
      const from = column;
      while (column < m && isHatched(state, row * m + column)) column++;
      if (column === from) continue;
      pen.rect(place.left + from * wide, place.band + row * cell, (column - from) * wide, cell);
      if (++runs > 20000) return;
    }
  }
  if (!runs) return;
  pen.fillStyle = hatch(pen, state.ink, place.scale);
  pen.fill();
}

export function paint(state) {
  const {data, ink, stage, place, picture} = state, {left, band, cell, wide, n, m, width, height} = place;
  const [pen] = sized(picture, stage.clientWidth, stage.clientHeight);
  pen.imageSmoothingEnabled = false;
  if (!data.rows.length || !data.columns.length) return;
  pen.drawImage(cells(state), left, band, width, height);
  hatched(state, pen);
  if (cell >= 8) {
    pen.beginPath();
    for (let i = 1; i < n; i++) pen.rect(left, band + i * cell - 0.5, width, 1);
    for (let i = 1; i < m; i++) pen.rect(left + i * wide - 0.5, band, 1, height);
    pen.fillStyle = css(ink.background, cell >= 14 ? 0.85 : 0.5);
    pen.fill();
    pen.fillStyle = css(ink.text, 0.05);
    pen.fill();
  }
  pen.strokeStyle = css(ink.border);
  pen.strokeRect(left - 0.5, band - 0.5, width + 1, height + 1);
  numbers(state, pen);
  ghost(state, pen);
  for (let row = 0; row < n; row += place.every[0]) rowLabel(state, pen, row, false);
  for (let column = 0; column < m; column += place.every[1]) columnLabel(state, pen, column, false);
  for (const [a, b] of data.groups[0]) bracket(pen, ink, left - 4, band + a * cell, (b + 1 - a) * cell, 2);
  for (const [a, b] of data.groups[1]) bracket(pen, ink, left + a * wide, band - 4, (b + 1 - a) * wide, 2, true);

  pen.font = `${SMALL}px ${ink.sans}`;
  pen.fillStyle = css(ink.muted);
  pen.textAlign = "right";
  pen.textBaseline = "alphabetic";
  data.words.corner.forEach((text, line) => pen.fillText(text, left - 8, band - 25 + 15 * line));
}

// Another picture, laid over this one as frames: the pattern that is expected.
function ghost({data, ink, place: {left, band, cell, wide, n, m}}, pen) {
  if (!data.planes.ghost) return;
  const inset = cell < 10 ? 0.5 : 2;
  pen.beginPath();
  for (let i = 0; i < n * m; i++) {
    if (!bit(data.planes.ghost, i)) continue;
    pen.rect(left + i % m * wide + inset, band + Math.floor(i / m) * cell + inset, wide - 2 * inset, cell - 2 * inset);
  }
  pen.strokeStyle = css(ink.accent);
  pen.lineWidth = cell < 10 ? 1 : 2.5;
  pen.stroke();
}

const lost = (value, places) => Number(value.toFixed(places)) === 0;
const firstDigit = value => Math.abs(value) < 0.1 ? value.toExponential(0) : value.toFixed(1);

// A number in every cell that has the room; two decimals where the largest is about one.
// Where the numbers were sent exactly, one that these decimals would make 0 has its first digit,
// and a share that they would make all of 1 one decimal more, as far as the cell has the room.
function numbers(state, pen) {
  const {data, ink, place, codes, exact, singles} = state, {left, band, cell, wide, n, m} = place;
  const values = singles ?? Array.from(codes, code => valueOf(code, data));
  if (data.scale === "mask" || Math.min(wide, 1.5 * cell) < 30 || n * m > 2500) return;
  pen.font = `${SMALL}px ${ink.mono}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const places = [100, 10, 0.2].filter(bound => data.top < bound).length;
  let shown = Array.from(values, (value, i) => {
    if (blank(state, i) || leftOut(state, i) || data.hidden.includes(i % m)) return "";
    if (value === 0) return "0";
    const plain = value.toFixed(places), nearly = data.top === 1 && value < 1 && plain === "1.00";
    const more = lost(value, places) ? firstDigit(value) : nearly ? value.toFixed(places + 1) : plain;
    const fits = exact && pen.measureText(more).width <= wide - 4;
    return (fits ? more : plain).replaceAll("-", "−");
  });
  const fit = () => shown.every(text => pen.measureText(text).width <= wide - 4);
  if (!fit()) shown = shown.map(text => text.replace(/^(−?)0\./, "$1."));
  if (!fit()) return;
  const colours = coloursOf(state);
  shown.forEach((text, i) => {
    if (!text) return;
    pen.fillStyle = lost(values[i], places) ? css(ink.muted, 0.6) : over(colours[level(state, i)]);
    pen.fillText(text, left + (i % m + 0.5) * wide, band + (Math.floor(i / m) + 0.5) * cell + 0.5);
  });
}

function labelInk(state, pen, axis, at, strong) {
  const {ink, data, place} = state;
  const special = data.muted[axis].includes(at) || (axis && data.hidden.includes(at));
  pen.font = `${strong ? `600 ${LABEL}` : place.font}px ${ink.mono}`;
  pen.fillStyle = css(special && !strong ? ink.muted : ink.text);
}

function rowLabel(state, pen, row, strong) {
  const {place, data} = state, y = place.band + (row + 0.5) * place.cell;
  labelInk(state, pen, 0, row, strong);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const text = fitted(pen, isolated(data.rows[row]), place.left - 12);
  if (strong) backdrop(state, pen, place.left - 8 - pen.measureText(text).width, y, text);
  pen.fillText(text, place.left - 8, y + 0.5);
}

function columnLabel(state, pen, column, strong) {
  const {place, data} = state;
  labelInk(state, pen, 1, column, strong);
  pen.save();
  pen.translate(place.left + (column + 0.5) * place.wide, place.band - (place.angle ? 9 : 7));
  pen.rotate(place.angle);
  pen.textAlign = place.angle ? "left" : "center";
  pen.textBaseline = place.angle ? "middle" : "alphabetic";
  const text = fitted(pen, isolated(data.columns[column]), place.angle ? place.turned : 1e4);
  const {width} = pen.measureText(text), [x, y] = place.angle ? [0, 0] : [-width / 2, -4];
  if (strong) backdrop(state, pen, x, y, text);
  pen.fillText(text, 0, 0);
  if (data.hidden.includes(column)) pen.fillRect(x, y - 0.5, width, 1.5);
  pen.restore();
}

// Clear the labels under a strong one, in its own direction.
function backdrop(state, pen, x, y, text) {
  const fill = pen.fillStyle;
  pen.fillStyle = css(state.ink.background);
  pen.fillRect(x - 4, y - 8, pen.measureText(text).width + 8, 16);
  pen.fillStyle = fill;
}

export function overlay(state) {
  const {canvas, stage, picture, ink, place} = state;
  if (!place) return;
  const [pen] = sized(canvas, stage.clientWidth, stage.clientHeight);
  pen.drawImage(picture, 0, 0, stage.clientWidth, stage.clientHeight);
  const cell = state.shown(), {left, band, width, height} = place;
  if (cell) {
    const x = left + cell.column * place.wide, y = band + cell.row * place.cell;
    const [thick, broad] = [place.cell, place.wide].map(size => Math.max(size, 2));
    pen.strokeStyle = css(ink.text, 0.55);
    pen.lineWidth = 1;
    if (cell.row >= 0) pen.strokeRect(left - 0.5, y - 0.5, width + 1, thick + 1);
    if (cell.column >= 0) pen.strokeRect(x - 0.5, band - 0.5, broad + 1, height + 1);
    if (cell.row >= 0 && cell.column >= 0) {
      pen.strokeStyle = css(ink.text);
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, broad + 2, thick + 2);
    }
    if (cell.row >= 0) rowLabel(state, pen, cell.row, true);
    if (cell.column >= 0) columnLabel(state, pen, cell.column, true);
  }
  tell(state);
}

export function legend(state) {
  const {data, ink, place, root} = state, box = root.querySelector(".legend");
  const bar = element("span", "bar"), parts = [];
  if (data.scale === "mask") {
    const on = element("span", "swatch");
    on.style.background = css(ink.sequential[150]);
    parts.push(on, element("span", "", "visible"));
  } else {
    bar.style.background = ramp(coloursOf(state));
    parts.push(...ends(state, bar).map(part => typeof part === "string" ? element("span", "", part) : part));
  }
  const named = (kind, name) => {
    const absent = element("span", "absent");
    absent.append(element("span", `swatch ${kind}`), name);
    parts.push(absent);
    return absent.firstChild;
  };
  if (state.codes.some((_, i) => isUnknown(state, i))) {
    named("unknown", "not a number").style.background = css(unknown(ink));
  }
  if (state.codes.some((_, i) => isHatched(state, i))) named("off", data.words.absent ?? "masked");
  box.replaceChildren(...parts);

  const every = Math.max(...place.every), notes = [];
  const nth = n => n === 2 ? "2nd" : n === 3 ? "3rd" : `${n}th`;
  if (every > 1) notes.push(`every ${nth(every)} label shown`);
  if (place.cell * place.scale < 1) notes.push("each pixel is the maximum of its cells");
  if (state.exact) notes.push(forPointer("point at a cell for three digits"));
  root.querySelector(".notes").textContent = notes.filter(Boolean).join(" · ");
}

// The unit, and what the colours begin and end at.
function ends({data}, bar) {
  const {top, scaling} = data, spec = {low: -top, high: top, steps: data.steps};
  const unit = data.words.unit + (data.log ? ", log" : "");
  const high = scaling === "all" ? number(top, spec) : `maximum of the ${scaling}`;
  if (data.scale === "diverging") return [unit, scaling === "all" ? number(-top, spec) : "−", bar, high];
  const least = scaling === "all" ? String(Number((top / 1000).toPrecision(2))) : "1/1000";
  return [unit, data.log ? `≤ ${least}` : "0", bar, high];
}

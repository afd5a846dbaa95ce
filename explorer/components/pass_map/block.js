// The inside of an opened block: its parts from left to right in the order they run, the residual
// stream below them. Every part is a button that leads to its page.

import {colours, layout} from "./paint.js";
import {go, hold, kind, point, reground, told} from "./view.js";
import {fades} from "../fading.js";
import {
  bit, choiceOf, css, element, hatch, mixed, say, sized, three, unknown, unpack,
} from "../shared.js";

const ZERO_CODE = 126, PLUS_INFINITE = 253, MASKED = 254;
const LARGE = 64, BAND = 34, WIDE = 46, STRIP = 56, EDGE = 5, LANE = 9;

export function makeInside(state) {
  const holder = state.root.querySelector(".inside");
  const bar = element("div", "bar"), flow = element("div", "flow");
  const name = element("span", "name"), label = element("label", "whose", "Head ");
  const head = element("select"), says = element("span", "says"), close = element("button", "close", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close the layer");
  head.setAttribute("aria-label", "Large picture of head");
  label.append(head);
  bar.append(name, label, says, close);
  holder.append(bar, flow);
  Object.assign(state, {inside: null, insideOf: null, builtFor: null, insideHead: 0});
  state.panel = {holder, flow, name, label, head, says, boxes: [], fade: fades(flow)};
  head.addEventListener("change", () => chooseHead(state, head.selectedIndex));
  close.addEventListener("click", () => closeInside(state));
  for (const kind of ["pointermove", "click", "wheel"]) {
    holder.addEventListener(kind, event => event.stopPropagation());
  }
  holder.addEventListener("pointerenter", () => point(state, null));
  holder.addEventListener("keydown", event => {
    event.stopPropagation();
    if (event.key !== "Escape") return;
    event.preventDefault();
    closeInside(state);
  });
  state.stage.addEventListener("scroll", () => { holder.style.left = `${state.stage.scrollLeft}px`; });
}

// For the keyboard: the layer that the pass has reached, or the first.
export function openReached(state) {
  const stack = state.flow.stacks.at(-1), layer = Math.min(Math.max(1, Math.ceil(state.front ?? 0)), stack.layers) - 1;
  if (layer >= 0) hold(state, {layer: {stack: stack.at, layer}});
}

export function closeInside(state) {
  state.open = null;
  layout(state);
  reground(state);
  told(state);
  state.canvas.focus({preventScroll: true});
}

// What the page has handed over: the parts of the open block, and the head that is chosen.
export async function readInside(state) {
  const {data} = state;
  const bytes = choiceOf(`${data.name}-inside`), chosen = choiceOf(`${data.name}-inside-head`);
  if (bytes && bytes !== state.insideOf) {
    state.insideOf = bytes;
    const inside = await unpack(bytes);
    if (bytes !== state.insideOf) return;
    state.inside = inside;
  }
  const text = JSON.stringify(chosen);
  if (chosen && text !== state.insideTold && chosen[0] === data.of) {
    state.insideTold = text;
    state.insideHead = chosen[3];
  }
  drawInside(state);
}

const isHere = ({inside, open, data}) => Boolean(inside && open && inside.of === data.of &&
  inside.stack === open.stack && inside.layer === open.layer);

// Show what is open; called whenever the picture around it is laid out.
export function drawInside(state) {
  const {panel, place, open, flow, ink} = state, {holder} = panel;
  if (!place) return;
  const isOpen = place.gap > 0 && open !== null;  // the places may still be those of another pass
  holder.hidden = !isOpen;
  if (!isOpen) { state.builtFor = null; panel.flow.replaceChildren(); return; }
  Object.assign(holder.style, {
    top: `${place.opened - place.gap}px`, height: `${place.gap}px`, width: `${state.stage.clientWidth}px`,
    left: `${state.stage.scrollLeft}px`,
  });
  const stack = flow.stacks[open.stack];
  panel.name.textContent = (flow.stacks.length > 1 ? `${stack.title}, layer` : "Layer") + ` ${open.layer}`;
  panel.label.hidden = !isHere(state) || state.inside.heads < 2;
  if (!isHere(state)) {
    if (state.builtFor) { state.builtFor = null; panel.flow.replaceChildren(); }
    const isApp = globalThis.explorerPage !== undefined;  // not an exported page
    panel.says.textContent = isApp ? state.data.words.reading : state.data.words.offline;
    return;
  }
  state.insideHead = Math.min(state.insideHead, state.inside.heads - 1);
  if (state.builtFor !== state.inside) { build(state); idle(state); }
  if (state.opens) {  // not where a link opened it
    state.opens = false;
    holder.scrollIntoView({block: "nearest"});
  }
  if (panel.inkOf !== ink) { panel.inkOf = ink; state.inside.tiles = new Map(); }
  panel.head.selectedIndex = state.insideHead;
  for (const box of panel.boxes) paintBox(state, box);
  connect(state);
  panel.fade();
}

function chooseHead(state, head) {
  state.insideHead = head;
  drawInside(state);
  idle(state);
  const {inside} = state;
  go(state, "overview", {part: partHere(state), layer: inside.layer, head, query: null, key: null, address: {}});
}

// ---- what is chosen: the head on screen, and the tokens that the map holds -------------------

const headOf = (state, part) => Math.floor(state.insideHead * part.cells[0] / state.inside.heads);
const partHere = ({inside, picked}) => picked && picked.layer === inside.layer &&
  picked.stack.at === inside.stack ? picked.part.name : inside.part;

// A place in the text of each stack, where one is held there.
function heldIn(state, stack) {
  const {picked, open, heldFrom, data, flow} = state;
  if (picked && picked.layer === open.layer && picked.stack.at === open.stack) {
    if (picked.stack.at === stack) return picked.query;
  }
  if (heldFrom?.stack === stack) return heldFrom.token;
  return stack === flow.stacks.length - 1 && data.count > 1 ? state.heldAt : null;
}

function tokensFor(state, part) {
  const {picked, open} = state;
  const isEdge = picked && picked.layer === open.layer && picked.part.name === part.part;
  if (isEdge) return {query: picked.query, key: picked.key};
  const query = heldIn(state, part.part.endsWith("cross_attn") ? open.stack : part.rows);
  const key = part.columns !== open.stack && state.heldFrom?.stack === part.columns ? state.heldFrom.token : null;
  return {query, key: part.part ? key : null};
}

function openPart(state, part) {
  const {inside} = state;
  go(state, part.page, {
    part: part.part || partHere(state), layer: inside.layer, head: state.insideHead,
    ...tokensFor(state, part), address: part.address,
  });
}

// ---- the boxes --------------------------------------------------------------------------------

const shapeOf = part => part.shape.map(([, size]) => size.toLocaleString("en-US")).join(" × ");
const shapeInWords = part => part.shape.map(([name, size]) => `${name} ${size.toLocaleString("en-US")}`).join(" × ");

function build(state) {
  const {panel, inside, root} = state;
  state.builtFor = inside;
  inside.tiles = new Map();
  panel.head.replaceChildren(...Array.from({length: inside.heads}, (_, at) => element("option", "", String(at))));
  const lanes = element("div", "lanes"), lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("aria-hidden", "true");
  lanes.append(lines);
  panel.boxes = inside.parts.map((part, at) => ({part, at, column: part.column}));
  const by = new Map(panel.boxes.map(box => [box.part.name, box]));
  for (const box of panel.boxes) {  // what is added stands below the part that is added
    if (!box.part.stream || !box.part.reads.length) continue;
    const above = box.part.reads.map(name => by.get(name)).filter(each => !each.part.stream);
    if (above.length) box.column = above.at(-1).column;
  }
  const places = [...new Set(panel.boxes.map(box => box.column))].sort((a, b) => a - b);
  const columns = withoutFirst(places, panel.boxes).map(at => {
    const made = element("div", "column"), upper = element("div", "upper"), rail = element("div", "rail");
    const own = panel.boxes.filter(box => box.column === at), branch = own.filter(box => !box.part.stream);
    for (const box of own) {
      box.together = branch.length;
      makeBox(state, box);
      (box.part.stream ? rail : upper).append(box.button);
    }
    made.append(...own[0].part.stream ? [rail, upper] : [upper, rail]);  // as they run, for the keyboard
    return made;
  });
  lanes.append(...columns);
  panel.lanes = lanes;
  panel.lines = lines;
  panel.by = by;
  panel.flow.replaceChildren(lanes);
  panel.flow.scrollLeft = 0;
  root.querySelector(".inside").scrollTop = 0;
}

// What enters the block stands below its first part.
function withoutFirst(places, boxes) {
  const first = boxes[0];
  if (places.length < 2 || !first.part.stream) return places;
  first.column = places[1];
  return places.filter(at => boxes.some(box => box.column === at));
}

function makeBox(state, box) {
  const {part, together} = box, button = element("button", "box");
  button.type = "button";
  button.classList.add(part.stream ? "stream" : together > 2 ? "low" : "tall");
  const canvas = element("canvas"), words = element("span", "words");
  words.append(element("span", "title", part.title), element("span", "formula", part.formula));
  const isLow = button.classList.contains("low"), shape = element("span", "shape", shapeOf(part) + (isLow && part.says ? ` · ${part.says}` : ""));
  if (part.says && !isLow && !part.stream) words.firstChild.after(element("span", "shape", part.says));
  if (part.stream) { words.append(shape); button.append(canvas, words); }
  else button.append(words, canvas, shape);
  box.button = button;
  box.canvas = canvas;
  placePictures(box);
  button.addEventListener("click", event => {
    const found = event.detail ? pictureAt(box, event) : null;
    if (found?.head !== undefined && !found.isLarge) chooseHead(state, headFrom(state, part, found.head));
    else openPart(state, part);
  });
  const tellHere = event => describe(state, box, pictureAt(box, event));
  button.addEventListener("pointermove", tellHere);
  button.addEventListener("pointerleave", () => idle(state));
  button.addEventListener("focus", () => describe(state, box, null));
  button.addEventListener("blur", () => idle(state));
}

// The first head that uses these keys and values, where several share them.
const headFrom = ({inside}, part, at) => Math.ceil(at * inside.heads / part.cells[0]);

// Where the pictures stand in the canvas of a box: the chosen head large, all heads small.
function placePictures(box) {
  const {part, together} = box, count = part.perHead ? part.cells[0] : 1, isTall = together < 2;
  const high = together > 2 ? 26 : 32;
  let large = {x: EDGE, y: EDGE, width: LARGE, height: LARGE}, band = {x: EDGE, y: EDGE + LARGE + 5, width: LARGE, height: BAND};
  if (part.stream) large = {x: EDGE, y: 1, width: 40, height: 32};
  else if (!isTall) {
    large = {x: EDGE, y: 1, width: count > 1 ? WIDE : LARGE + 14, height: high};
    band = {x: EDGE + WIDE + 6, y: 1, width: STRIP, height: high};
  } else if (part.square && part.cells[1] !== part.cells[2]) {  // square cells
    const most = Math.max(part.cells[1], part.cells[2]);
    large.width = LARGE * part.cells[2] / most;
    large.height = LARGE * part.cells[1] / most;
    band.y = large.y + large.height + 5;
  }
  const small = count > 1 && !part.stream ? strip(count, band) : [];
  box.pictures = [{...large, isLarge: true}, ...small];
  box.size = ["x", "y"].map(side => 1 + Math.max(...box.pictures.map(each => each[side] + each[side === "x" ? "width" : "height"])));
}

// The largest squares of which so many have room.
function strip(count, {x, y, width, height}) {
  let side = Math.floor(height);
  const across = () => Math.floor((width + 2) / (side + 2)), down = () => Math.floor((height + 2) / (side + 2));
  while (side > 2 && across() * down() < count) side--;
  const each = Math.max(1, across());
  return Array.from({length: count}, (_, head) => ({
    head, x: x + head % each * (side + 2), y: y + Math.floor(head / each) * (side + 2), width: side, height: side,
  }));
}

function pictureAt(box, event) {
  const bounds = box.canvas.getBoundingClientRect();
  const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
  const found = box.pictures.find(each => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
  if (!found) return null;
  const [, rows, columns] = box.part.cells;
  return {
    ...found, row: Math.floor((y - found.y) / found.height * rows),
    column: Math.floor((x - found.x) / found.width * columns),
  };
}

// ---- pictures -----------------------------------------------------------------------------------

// One picture, a cell a pixel; masked cells are left out.
function tileOf(state, box, head) {
  const {inside, ink} = state, {part, at} = box, name = `${at}.${head}`;
  if (inside.tiles.has(name)) return inside.tiles.get(name);
  const [, rows, columns] = part.cells, size = rows * columns, codes = inside.planes[`${at}.cells`];
  const tile = new OffscreenCanvas(Math.max(1, columns), Math.max(1, rows)), pen = tile.getContext("2d");
  const image = pen.createImageData(Math.max(1, columns), Math.max(1, rows)), masked = [];
  for (let i = 0; i < size; i++) {
    const code = codes[head * size + i];
    if (!part.weights && code === MASKED) { masked.push(i); continue; }
    image.data.set([...shadeOfCell(state, box, head * size + i, code).map(Math.round), 255], 4 * i);
  }
  pen.putImageData(image, 0, 0);
  const made = {tile, masked};
  inside.tiles.set(name, made);
  return made;
}

function shadeOfCell({inside, ink}, {part, at}, i, code) {
  if (part.weights) {
    const missing = inside.planes[`${at}.unknown`];
    return missing && bit(missing, i) ? unknown(ink) : ink.sequential[code];
  }
  if (code > PLUS_INFINITE) return unknown(ink);
  return ink.diverging[Math.round(Math.min(code, 2 * ZERO_CODE) / (2 * ZERO_CODE) * 254)];
}

function paintBox(state, box) {
  const {canvas, part, size, pictures} = box, {ink} = state;
  const head = headOf(state, part);
  Object.assign(canvas.style, {width: `${size[0]}px`, height: `${size[1]}px`});
  const [pen, scale] = sized(canvas, ...size);
  pen.imageSmoothingEnabled = false;
  for (const picture of pictures) {
    const {tile, masked} = tileOf(state, box, picture.isLarge ? head : picture.head);
    const {x, y, width, height} = picture;
    pen.drawImage(tile, x, y, width, height);
    if (masked.length) covered(pen, state, part, masked, picture, scale);
    const isChosen = !picture.isLarge && picture.head === head;
    pen.strokeStyle = css(isChosen ? ink.accent : ink.border);
    pen.lineWidth = isChosen ? 1.5 : 0.75;
    pen.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  }
  rowMarks(state, pen, box);
  box.button.setAttribute("aria-label", `${part.title}${part.perHead ? `, head ${head}` : ""}: ` +
    `${shapeInWords(part)}. Opens ${part.opens}.`);
}

function covered(pen, {ink}, part, masked, {x, y, width, height, isLarge}, scale) {
  const [, rows, columns] = part.cells, path = new Path2D();
  for (const i of masked) {
    path.rect(x + i % columns * width / columns, y + Math.floor(i / columns) * height / rows, width / columns, height / rows);
  }
  pen.fillStyle = isLarge ? hatch(pen, ink, scale, 4) : css(ink.text, 0.14);
  pen.fill(path);
}

// The row of the token that is held, and the column of its key.
function rowMarks(state, pen, box) {
  const {part, pictures: [{x, y, width, height}]} = box, [, rows, columns] = part.cells, {ink} = state;
  const {query, key} = tokensFor(state, part);
  const isKeys = part.part.endsWith("cross_attn") && part.rows !== state.open.stack;
  const row = isKeys ? key : query;
  pen.fillStyle = css(ink.accent);
  if (row !== null && row < rows * part.pooled[0]) {
    const tall = Math.max(2, height / rows);
    pen.fillRect(x - 4, y + Math.floor(row / part.pooled[0]) * height / rows + (height / rows - tall) / 2, 2.5, tall);
  }
  if (part.square && key !== null && key < columns * part.pooled[1] && y >= 4) {
    const wide = Math.max(2, width / columns);
    pen.fillRect(x + Math.floor(key / part.pooled[1]) * width / columns + (width / columns - wide) / 2, y - 4, wide, 2.5);
  }
}

// ---- words --------------------------------------------------------------------------------------

function idle(state) {
  state.panel.says.textContent = isHere(state) ? state.data.words.inside : "";
}

const range = (first, count, every) => {
  const last = Math.min(every, first + count) - 1;
  return first === last ? String(first) : `${first}–${last}`;
};

function describe(state, {part, at}, found) {
  const {says} = state.panel, {flow} = state;
  const head = found?.head ?? headOf(state, part);
  const words = [part.title + (part.perHead ? ` of head ${headFrom(state, part, head)}` : ""), ` (${shapeOf(part)})`];
  const names = {};
  if (found) {
    const rows = flow.stacks[part.rows].tokens, first = found.row * part.pooled[0];
    names.row = rows[first];
    words.push(part.square ? ", query {row}" : ", token {row}");
    if (part.pooled[0] > 1) words.push(` and ${range(first, part.pooled[0], rows.length)}`);
    const across = found.column * part.pooled[1];
    if (part.square) {
      names.column = flow.stacks[part.columns].tokens[across];
      words.push(", key {column}");
      const [, high, wide] = part.cells, cell = (head * high + found.row) * wide + found.column;
      if (!part.weights && state.inside.planes[`${at}.cells`][cell] === MASKED) words.push(", masked");
    } else words.push(`, dimension ${range(across, part.pooled[1], part.shape.at(-1)[1])}`);
  }
  const [end, largest] = part.ends[head];
  if (end === null) words.push(". Not a number");
  else words.push(part.weights ? `. Darkest: ${three(end)}` : `. Colours to ±${three(end)}` + (largest > end ? `, largest ${three(largest)}` : ""));
  const [down, across] = part.pooled;
  if (down * across > 1) words.push(`. A cell is the largest of ${down} × ${across} numbers`);
  words.push(found && !found.isLarge && part.perHead ? ". Click: choose this head" : `. Opens ${part.opens}`);
  say(says, words.join(""), names);
}

// ---- lines ----------------------------------------------------------------------------------------

function connect(state) {
  const {panel, ink} = state, {lanes, lines, by, boxes} = panel, area = lanes.getBoundingClientRect();
  if (!area.width) return;
  const crisp = value => Math.round(value) + 0.5;
  const places = new Map(boxes.map(box => {
    const {left, right, top, bottom} = box.button.getBoundingClientRect(), x = -area.left, y = -area.top;
    return [box, {
      left: crisp(left + x), right: crisp(right + x) - 1, top: crisp(top + y), bottom: crisp(bottom + y) - 1,
      middle: crisp((top + bottom) / 2 + y), centre: crisp((left + right) / 2 + x),
    }];
  }));
  const grey = css(mixed(ink.background, ink.text, 0.45)), {stream} = colours(state);
  const streams = boxes.filter(box => box.part.stream), rail = places.get(streams[0]).middle;
  const columns = [...new Set(boxes.filter(box => !box.part.stream).map(box => box.column))].sort((a, b) => a - b);
  const wide = lanes.scrollWidth, drawn = [path(`M0 ${rail}H${wide}`, css(stream), 3)];
  const lead = (way, {left}, y) => drawn.push(path(`${way}V${y}H${left}`, grey, 1), arrow(left, y, grey));
  for (const box of boxes) for (const from of box.part.reads.map(name => by.get(name))) {
    const a = places.get(from), b = places.get(box), left = b.left - LANE;
    if (box.part.stream) {
      if (from.part.stream) continue;
      drawn.push(path(`M${a.centre} ${a.bottom}V${b.top - 15}`, grey, 1), ...plus(a.centre, b.top - 8, stream, ink));
    } else if (from.part.stream) {
      const isPast = streams.some(each => each !== from && each.at > from.at && each.at < box.at);
      lead(isPast ? `M${a.left - LANE} ${rail}V4.5H${left}` : `M${left} ${rail}`, b, b.middle);
    } else if (columns.indexOf(box.column) - columns.indexOf(from.column) < 2) {
      lead(`M${a.right} ${a.middle}H${left}`, b, b.middle);
    } else {  // past the columns between them, below or above
      const isLow = a.middle > rail / 2, lane = isLow ? rail - 33 : 4.5;
      lead(`M${a.right} ${a.middle}H${a.right + 5}V${lane}H${left}`, b, isLow ? b.bottom - 12 : b.top + 12);
    }
  }
  lines.setAttribute("width", String(wide));
  lines.setAttribute("height", String(lanes.clientHeight));
  lines.replaceChildren(...drawn);
}

function shape(kind, how) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(how)) made.setAttribute(name, String(value));
  return made;
}

const path = (d, stroke, wide) => shape("path", {d, stroke, "stroke-width": wide, fill: "none"});
const arrow = (x, y, fill) => shape("path", {d: `M${x - 6} ${y - 3.5}L${x} ${y}L${x - 6} ${y + 3.5}Z`, fill});
const plus = (x, y, colour, ink) => [
  shape("circle", {cx: x, cy: y, r: 7, fill: css(ink.background), stroke: css(colour), "stroke-width": 1.6}),
  path(`M${x - 4} ${y}H${x + 4}M${x} ${y - 4}V${y + 4}`, css(colour), 1.6),
];

// What every view of this app needs: the wire format, colours, labels, a canvas. THEME is written
// before it by mounting.py, from charts/theme.py.

import {watchStages} from "./figure_stage.js";

export const INFINITE = 65533, MINUS_INFINITE = 65534, ABSENT = 65535;

// ---- the wire: see wire.py --------------------------------------------------------

export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const body = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = new DataView(body.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(body.subarray(4, 4 + size)));
  let at = 4 + size;
  for (const [name, length] of Object.entries(header.planes)) {
    header.planes[name] = body.subarray(at, at += length);
  }
  return header;
}

// Codes from a plane of low bytes and a plane of high bytes.
export function joined(plane) {
  const half = plane.length / 2, codes = new Uint16Array(half);
  for (let i = 0; i < half; i++) codes[i] = plane[i] | plane[half + i] << 8;
  return codes;
}

export const bit = (plane, i) => plane[i >> 3] >> (7 - (i & 7)) & 1;

// What a code stands for; `spec` is the header of its array.
export function valueOf(code, spec) {
  if (code >= INFINITE) return [Infinity, -Infinity, NaN][code - INFINITE];
  return spec.low + code / spec.steps * (spec.high - spec.low);
}

// The numbers in single precision, where they were sent: what is written is rounded once.
export const singlesOf = ({planes: {exact}}) => exact && new Float32Array(exact.slice().buffer);

// ---- numbers ----------------------------------------------------------------------

// At least 0 and at most `most`.
export const upTo = (most, value) => Math.max(0, Math.min(most, value));

// Three significant digits, never finer than what was sent.
export function number(value, spec) {
  if (Number.isNaN(value)) return "no value";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const step = (spec.high - spec.low) / spec.steps;
  const finest = upTo(6, Math.floor(1e-9 - Math.log10(step)));
  const size = Math.floor(Math.log10(Math.abs(value)));
  const text = Math.abs(value).toFixed(upTo(finest, 2 - size));
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}

// As it was sent: in single precision, or by its code, which knows no less than a step.
export const sent = ({data, singles}, value) => singles ? three(value, data.error) : number(value, data);

// Three significant digits, or fewer where the value may be off by `error`, as number_format.py
// writes them.
export function three(value, error = 0) {
  if (Number.isNaN(value)) return "no value";
  const sign = value < 0 ? "−" : "", size = Math.abs(value);
  if (size === Infinity) return `${sign}∞`;
  if (size === 0) return "0";
  const first = Math.floor(Math.log10(size));
  const behind = error ? Math.min(2, first + Math.floor(-Math.log10(2 * error))) : 2;
  if (behind < 0) return "0";
  const rounded = Number(size.toPrecision(behind + 1)), magnitude = Math.floor(Math.log10(rounded));
  if (first < -5) return sign + size.toExponential(behind).replace("e-", "e−");
  const places = Math.max(0, behind - magnitude);
  return sign + rounded.toLocaleString("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
}

// As many digits as a cell has the room for, the one before the point included; a sentence has the
// number as it was sent.
export function inCell(value, digits) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "" : three(value);
  const before = Math.max(0, Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.max(0, digits - 1 - before)).replace("-", "−");
}

// How full a colour is, 0 to 1, where `top` has all of it; on a log scale three decades lie below.
const DECADES = 3;
export function strength(value, top, log) {
  const share = top > 0 ? upTo(1, value / top) : 0;
  return log && share > 0 ? Math.max(0, 1 + Math.log10(share) / DECADES) : share;
}

// ---- labels -----------------------------------------------------------------------

const graphemes = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;
const letters = text =>
  graphemes ? Array.from(graphemes.segment(text), part => part.segment) : Array.from(text);

// A label keeps its own direction, whatever stands around it.
export const isolated = text => "\u2068" + text + "\u2069";

// The label, cut in the middle where it is wider than `width`.
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const parts = letters(text.length > 400 ? text.slice(0, 200) + text.slice(-200) : text);
  let low = 0, high = parts.length - 1;
  const cut = kept => parts.slice(0, Math.ceil(kept / 2)).join("") + "…" +
    parts.slice(parts.length - Math.floor(kept / 2)).join("");
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle; else high = middle - 1;
  }
  return cut(low);
}

// Fill `element` from a sentence with {names} in it; never as HTML.
export function say(element, template, parts) {
  element.replaceChildren(...template.split(/(\{\w+\})/).filter(Boolean).map(piece => {
    const name = /^\{\w+\}$/.test(piece) ? piece.slice(1, -1) : null;
    if (name === null || parts[name] === undefined) return document.createTextNode(piece);
    const span = document.createElement("bdi");
    span.className = name === "value" ? "value" : "token";
    span.textContent = parts[name];
    return span;
  }));
}

// The line over a picture: a sentence with its parts on what is pointed at, else its title. What can
// be done stands under the picture.
export function tellLine(root, {title, hint}, said, isPinned = false) {
  const line = root.querySelector(".sentence");
  line.classList.toggle("idle", !said);
  say(line, ...(said ?? [title, {}]));
  root.querySelector(".hint").textContent = said ? "" : hint;
  if (isPinned) line.append(pinned("  "));
  return line;
}

// Esc goes to what has the focus: it is named where it would unpin.
export function pinned(lead) {
  const words = element("span", "where", `${lead}pinned`);
  words.append(element("span", "unpins", forPointer(", Esc unpins")));
  return words;
}

// Nobody points with a finger, and a phone has no Esc.
export const forPointer = words => matchMedia("(hover: hover)").matches ? words : "";

// Whether two places, which are plain values, are one.
export const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

export const counted = (many, word) => `${many} ${word}${many === 1 ? "" : "s"}`;

export const plain = (template, parts) =>
  template.replace(/\{(\w+)\}/g, (whole, name) => parts[name] ?? whole);

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- colours ----------------------------------------------------------------------

export function rgb(colour) {
  const hex = /^#([0-9a-f]{6})/i.exec(colour);
  if (hex) return [0, 2, 4].map(i => parseInt(hex[1].slice(i, i + 2), 16));
  return (colour.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
}

export const css = ([r, g, b], alpha = 1) => `rgba(${r | 0},${g | 0},${b | 0},${alpha})`;
export const mixed = (a, b, t) => a.map((x, i) => x + (b[i] - x) * t);
// Relative luminance, from 0 to 1: 196965 is 255 ** 2.2.
const luminance = ([r, g, b]) => (0.2126 * r ** 2.2 + 0.7152 * g ** 2.2 + 0.0722 * b ** 2.2) / 196965;

// Colours along evenly spaced stops: 256, or 255 where zero must be in the middle.
function table(stops, size) {
  return Array.from({length: size}, (_, i) => {
    const at = i / (size - 1) * (stops.length - 1), left = Math.min(stops.length - 2, Math.floor(at));
    return mixed(stops[left], stops[left + 1], at - left);
  });
}

// The colours as a bar.
export function ramp(colours) {
  const stops = Array.from({length: 17}, (_, i) => css(colours[Math.round(i / 16 * (colours.length - 1))]));
  return `linear-gradient(90deg, ${stops.join(",")})`;
}

// The theme of the page as numbers and fonts, read anew at every run.
function inkOf(root) {
  const style = getComputedStyle(root);
  const get = (name, otherwise) => {
    const value = style.getPropertyValue(name).trim();
    return value && value !== "unset" ? value : otherwise;
  };
  const background = rgb(get("--st-background-color", "#ffffff"));
  const dark = luminance(background) < 0.2, colours = THEME[dark ? "dark" : "light"];
  const sequential = colours.sequential.map(rgb), diverging = colours.diverging.map(rgb);
  sequential[0] = diverging[(diverging.length - 1) / 2] = background;
  const text = rgb(get("--st-text-color", dark ? "#eeeeee" : "#222222"));
  return {
    dark, background, text,
    muted: rgb(colours.muted),
    accent: rgb(get("--st-primary-color", "#3b6fc4")),
    border: rgb(get("--st-border-color", dark ? "#333333" : "#dddddd")),
    sequential: table(sequential, 256), diverging: table(diverging, 255),
    sans: get("--st-font", "sans-serif"), mono: get("--st-code-font", "monospace"),
  };
}

// Where a number should be and there is none: a plain grey, which is on no scale.
export const unknown = ink => mixed(ink.background, ink.text, 0.4);

// A cell of a small picture: see shades in wire.py.
export const shadeOf = ({data, ink}, i) => data.planes.unknown && bit(data.planes.unknown, i)
  ? unknown(ink) : ink.sequential[data.planes.cells[i]];
export const maximum = top => top === null ? "its weights are not a number"
  : `maximum weight ${number(top, {low: 0, high: 1, steps: 10000})}`;

// The text that stands out more on `colour`, by at least 4.5 to 1.
export const over = colour => luminance(colour) > 0.18 ? "#000" : "#fff";

// Fine diagonal lines: here nothing may be looked at.
export function hatch(context, ink, scale, gap = 5) {
  const size = Math.round(gap * scale), tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.strokeStyle = css(ink.text, ink.dark ? 0.34 : 0.28);
  pen.lineWidth = Math.max(0.8, 0.8 * scale);
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.lines = {gap, colour: pen.strokeStyle, wide: pen.lineWidth / scale};
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}

// ---- what is chosen in a view, and the page ----------------------------------------

export const REST = 250;

// What the page hands over to the views, by name: a value, and which telling of the view it answers.
export const choiceOf = name => globalThis.explorerChoices?.get(name)?.[0];

// Tell the page what is chosen, once the hand rests. Each telling has a number (events.py).
export function tellPage(state, value, rest = REST) {
  if (!state.data.tells) return;
  Object.assign(state, {told: (state.told ?? 0) + 1, untold: value, path: location.pathname});
  clearTimeout(state.telling);
  state.telling = setTimeout(() => tellNow(state), rest);
}

// After Back nothing is told: the server would return to the page that was left.
export function tellNow(state) {
  const {untold, path} = state, text = JSON.stringify(untold);
  clearTimeout(state.telling);
  state.untold = undefined;
  if (untold === undefined || path !== location.pathname) return;
  if (text === state.agreed) {
    state.told = state.sent;
    return;
  }
  Object.assign(state, {agreed: text, sent: state.told});
  state.component.setTriggerValue("chosen", [untold, state.told]);
}

// The page's choice where it is news, else undefined: what answers an earlier telling is old. Another
// session, on another server, counts anew.
export function news(state) {
  const [choice, answers = 0, session] = globalThis.explorerChoices?.get(state.data.name) ?? [];
  if (choice === undefined) return undefined;
  if (session !== state.session) Object.assign(state, {session, told: 0, sent: 0});
  if (answers < (state.told ?? 0)) return undefined;
  state.told = state.sent = answers;
  const text = JSON.stringify(choice);
  if (text === state.agreed) return undefined;
  state.agreed = text;
  return choice;
}

// ---- what a picture says to who does not see it --------------------------------------

export const MOST = 3;

// The places of the largest of so many sizes, the largest first; what is no positive number is none.
export function largestOf(count, size) {
  const found = [];
  for (let at = 0; at < count; at++) {
    const value = size(at);
    if (!(value > 0) || (found.length === MOST && value <= found.at(-1)[0])) continue;
    found.push([value, at]);
    found.sort((a, b) => b[0] - a[0]);
    found.length = Math.min(MOST, found.length);
  }
  return found.map(([, at]) => at);
}

// A text beside a canvas that a screen reader reads after its name: what it shows, and its largest
// values in words. Python says the same of a chart: see charts/figure_text.py.
export function putInWords(root, canvas, title, largest) {
  const place = [...root.querySelectorAll("canvas")].indexOf(canvas);
  let text = root.querySelector(`#described-${place}`);
  if (!text) {
    text = element("span", "described");
    Object.assign(text, {id: `described-${place}`, hidden: true});
    root.append(text);
    canvas.setAttribute("aria-describedby", text.id);
    if (!canvas.hasAttribute("role")) canvas.setAttribute("role", "img");
  }
  const most = largest.length ? `. The largest: ${largest.join("; ")}` : "";
  text.textContent = `${title}${most}.`;
}

// ---- the keys of a table --------------------------------------------------------------

const ARROWS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

// The cell that this key leads to from another, or the first; none where it is no arrow.
export function moved(key, from, sizes) {
  const step = ARROWS[key];
  if (!step || sizes.includes(0)) return undefined;
  return step.map((by, side) => from ? upTo(sizes[side] - 1, from[side] + by) : 0);
}

// A key that has done something does nothing else.
export function taken(event) {
  event.preventDefault();
  event.stopPropagation();
}

// ---- a canvas ---------------------------------------------------------------------

// The tokens of one character: a bracket `length` long on one side of their labels.
export function bracket(pen, ink, x, y, length, tick, across) {
  const corners = [[tick, 1], [0, 1], [0, length - 1], [tick, length - 1]]
    .map(([a, b]) => across ? [x + b, y + a + 0.5] : [x + a + 0.5, y + b]);
  pen.strokeStyle = css(ink.muted);
  pen.lineWidth = 1;
  pen.stroke(new Path2D("M" + corners.join("L")));
}

// Size a canvas to device pixels; drawing stays in CSS pixels. While a picture is saved, another pen
// notes what is drawn (tools/vector_picture.js).
export function sized(canvas, width, height) {
  const scale = Math.max(1, window.devicePixelRatio || 1);
  const w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, {width: w, height: h});
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.direction = "ltr";
  return [globalThis.explorerPen?.(context, canvas, width, height) ?? context, scale];
}

// How high a picture may be: all that the window leaves (see figure_stage.js), or the height of its view.
export function heightOf({root, stage}) {
  const room = parseFloat(getComputedStyle(root).getPropertyValue("--room"));
  return room ? room - (root.clientHeight - stage.clientHeight) : stage.clientHeight;
}

// A picture that needs less has no empty place below it: its view ends there, or, where the view has
// a height of its own, its last line is lifted.
export function needs(state, used) {
  const {root, stage} = state, unused = Math.max(0, Math.floor(heightOf(state) - used));
  const room = parseFloat(getComputedStyle(root).getPropertyValue("--room"));
  root.style.setProperty("--need", room ? `${room - unused}px` : "none");
  root.style.setProperty("--lift", `${room ? 0 : -unused}px`);
}

// One state per mounted view. The default export runs again with every change of the
// data or of the theme: `make` runs once, `show` with every change and every resize.
const mounted = new WeakMap();
const sizeOf = ({stage, root}) => [
  (stage ?? root).clientWidth, heightOf({root, stage: stage ?? root}), devicePixelRatio].join();

// However many events come, one frame draws once.
export function later(state, paint) {
  state.waiting ||= requestAnimationFrame(() => { state.waiting = 0; paint(state); });
}

export function redraw(state, show) {
  state.root.inert = false;
  state.size = sizeOf(state);
  show(state);
}

// The key of a view in Python, which Streamlit notes as a class; an offline page hands it over.
function nameOf({parentElement, key}) {
  const root = parentElement.getRootNode(), keyed = root.host?.closest("[class*=st-key-]");
  return keyed ? [...keyed.classList].find(name => name.startsWith("st-key-")).slice(7) : key;
}

// What a film hands to this view, else its own data; false where something newer is being read.

async function read(state, component) {
  const bytes = globalThis.explorerFrames?.get(nameOf(component)) ?? component.data;
  state.filmed = bytes !== component.data;
  const turn = state.reading = (state.reading ?? 0) + 1;
  if (state.bytes === bytes) return true;
  const data = await unpack(bytes);
  if (turn !== state.reading) return false;
  Object.assign(state, {bytes, data, fresh: true});
  return true;
}

async function mount(component, selector, make, show) {
  const root = component.parentElement.querySelector(selector);
  if (!root) return undefined;
  if (root.getRootNode().host?.closest("[class*=st-key-stage-]")) watchStages();
  let state = mounted.get(root);
  if (!state) {
    state = {root, turn: 0, stage: root.querySelector(".stage"), canvas: root.querySelector("canvas")};
    root.inert = true;  // or it is pointed at before it has its numbers
    for (const type of ["pointerleave", "focusout", "blur"]) {  // inert things hear these
      root.addEventListener(type, event => state.data || event.stopImmediatePropagation(), true);
    }
    mounted.set(root, state);
    make(state);
    state.fit = () => state.data && sizeOf(state) !== state.size && redraw(state, show);
    state.observer = new ResizeObserver(state.fit);
  }
  // When the page is enlarged, a view may have as many pixels of the page as before.
  addEventListener("resize", state.fit);
  document.addEventListener("explorer-room", state.fit);
  state.observer.observe(state.stage || root);
  const framed = async () => {
    if (!globalThis.explorerFrames?.has(nameOf(component)) && !state.filmed) return;
    if (!await read(state, component)) return;
    redraw(state, show);
    root.dataset.painted = String(state.turn);
  };
  const heard = {"explorer-choice": state.chosen, "explorer-head": state.headed, "explorer-frame": framed};
  const ears = Object.entries(heard).filter(([, ear]) => ear);
  for (const [event, ear] of ears) document.addEventListener(event, ear);
  const away = () => {
    state.observer.disconnect();
    removeEventListener("resize", state.fit);
    document.removeEventListener("explorer-room", state.fit);
    for (const [event, ear] of ears) document.removeEventListener(event, ear);
  };
  const turn = ++state.turn, start = performance.now();
  const pictures = globalThis.explorerPictures ??= new Map();
  pictures.set(nameOf(component), {root, draw: () => redraw(state, show)});
  state.component = component;
  state.ink = inkOf(root);
  if (!await read(state, component)) return away;
  root.style.setProperty("--muted", css(state.ink.muted));
  const fonts = [state.ink.mono, state.ink.sans].map(family => `13px ${family}`);
  const hasFonts = fonts.every(font => document.fonts.check(font));
  redraw(state, show);
  root.dataset.painted = String(turn);
  performance.measure(component.name, {start});
  // A canvas does not wait for its fonts: paint again when they are there.
  if (!hasFonts) {
    Promise.all(fonts.map(font => document.fonts.load(font)))
      .then(found => found.flat().length && root.isConnected && redraw(state, show), () => {});
  }
  return away;
}

// The page gets this code once; pictures ask for it by name (stub.js).
export function publish(name, selector, make, show) {
  const draw = component => mount(component, selector, make, show);
  (globalThis.explorerViews ??= new Map()).set(`explorer_${name}`, draw);
  document.dispatchEvent(new Event("explorer-view"));
}

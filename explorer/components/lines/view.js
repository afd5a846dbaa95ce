// Two columns of tokens and a line for every attention between them. The canvas is as
// high as what is seen of it; scrolling draws it anew.

import {
  bracket, choiceOf, css, element, fitted, isolated, joined, largestOf, later, needs, news, publish,
  putInWords, same, sent, singlesOf, sized, strength, taken, tellLine, tellPage,
} from "../shared.js";

const ROW = 24, WIDEST = 720, BINS = 20, TWICE = 500;

// One hue per head, around the wheel; okay on both backgrounds.
const hue = (head, heads, dark, alpha = 1) =>
  `hsla(${(head * 360 / heads + 212) % 360},${dark ? 75 : 72}%,${dark ? 64 : 40}%,${alpha})`;

function make(state) {
  const {stage, canvas} = state;
  state.hovered = state.locked = null;
  stage.addEventListener("scroll", () => later(state, paint), {passive: true});
  stage.addEventListener("pointermove", event => {
    const token = hit(state, event);
    if (same(token, state.hovered)) return;
    state.hovered = token;
    later(state, paint);
  });
  stage.addEventListener("pointerleave", () => { state.hovered = null; later(state, paint); });
  canvas.addEventListener("click", event => {
    const token = hit(state, event);
    if (!token) return;
    state.locked = same(token, state.locked) ? null : token;
    told(state);
    later(state, paint);
  });
  stage.addEventListener("keydown", event => walk(state, event));
  state.chosen = () => {
    if (state.data && choose(state)) { chips(state); later(state, paint); }
  };
}

const shownToken = state => state.hovered || state.locked;

function walk(state, event) {
  const {data, stage} = state, held = state.locked;
  const step = {ArrowUp: -1, ArrowDown: 1}[event.key], turn = {ArrowLeft: 0, ArrowRight: 1}[event.key];
  if (event.key === "Escape" && held) state.locked = null;
  else if (step || turn !== undefined) {
    const side = turn ?? held?.side ?? 0, last = (side ? data.columns : data.rows).length - 1;
    const at = Math.max(0, Math.min(last, held ? held.at + (step || 0) : 0));
    state.locked = {side, at};
    state.hovered = null;
    const top = at * ROW;
    if (top < stage.scrollTop) stage.scrollTop = top;
    if (top + ROW > stage.scrollTop + stage.clientHeight) stage.scrollTop = top + ROW - stage.clientHeight;
  } else return;
  told(state);
  later(state, paint);
  taken(event);
}

function hit(state, event) {
  const {data, stage, place} = state;
  if (!place) return null;
  const box = stage.getBoundingClientRect(), x = event.clientX - box.left;
  const at = Math.floor((event.clientY - box.top + stage.scrollTop) / ROW);
  const side = x < place.left + 12 ? 0 : x > place.right - 12 && x < place.width ? 1 : -1;
  return side < 0 || at >= (side ? data.columns : data.rows).length ? null : {side, at};
}

// ---- heads -------------------------------------------------------------------------

// What the page asks for is drawn and held; true when that is news.
function choose(state) {
  const {data} = state, heads = data.shape[0], choice = news(state) ?? null;
  if (!choice && state.active?.length === heads) return false;
  const {drawn, held} = choice ?? choiceOf(data.name) ?? {};
  const some = (drawn ?? []).filter(head => head < heads);
  state.active = Array.from({length: heads}, (_, head) => !some.length || some.includes(head));
  const [side, at] = held ?? [];
  if (choice) state.locked = inside(state, {side, at}) ? {side, at} : null;
  return true;
}

const inside = ({data}, token) => token && token.at < (token.side ? data.columns : data.rows).length;

const told = (state, rest) => tellPage(state, {
  drawn: activeHeads(state), held: state.locked ? [state.locked.side, state.locked.at] : [],
}, rest);

const hueOf = ({data, ink}, head, alpha = 1) => hue(data.hues[head], 1, ink.dark, alpha);

const activeHeads = ({active}) => active.flatMap((on, head) => on ? [head] : []);

function chips(state) {
  const {data, root, active} = state;
  root.querySelector(".heads").replaceChildren(...active.map((on, head) => {
    const button = element("button"), dot = element("span", "dot");
    button.type = "button";
    button.title = data.words.toggle;
    button.style.setProperty("--hue", hueOf(state, head));
    button.setAttribute("aria-pressed", String(on));
    // Many chips stand in few lines when only the number is written on them.
    button.setAttribute("aria-label", data.names[head]);
    button.append(dot, active.length > 8 ? data.names[head].replace("head ", "") : data.names[head]);
    button.addEventListener("click", event => toggle(state, head, event.detail > 1));
    return button;
  }));
}

// A click toggles, a second one at once isolates; isolating the only one restores all.
function toggle(state, head, twice) {
  const {active} = state, before = state.before || active;
  if (twice) {
    const alone = before.every((on, i) => on === (i === head));
    state.active = active.map((_, i) => alone || i === head);
    state.before = null;
  } else {
    state.before = active.slice();
    clearTimeout(state.forget);
    state.forget = setTimeout(() => { state.before = null; }, TWICE);
    if (active[head] && activeHeads(state).length === 1) return;
    state.active = active.map((on, i) => i === head ? !on : on);
  }
  const buttons = state.root.querySelectorAll(".heads button");
  state.active.forEach((on, i) => buttons[i].setAttribute("aria-pressed", String(on)));
  describeLines(state);
  told(state, TWICE);
  later(state, paint);
}

// ---- painting ------------------------------------------------------------------------

const weight = ({codes, data, singles}, head, row, column) => {
  const i = (head * data.rows.length + row) * data.columns.length + column;
  return singles ? singles[i] : codes[i] / data.steps * data.high;
};

// The same between 0 and 1: against the top of the picture, or of the head's own row or column.
function strong(state, head, row, column) {
  const {data, tops} = state, value = weight(state, head, row, column);
  if (!tops) return strength(value, data.top, data.log);
  const by = data.scaling === "row", count = (by ? data.rows : data.columns).length;
  return strength(value, tops[head * count + (by ? row : column)], data.log);
}

function topsOf(state) {
  const {data} = state, by = data.scaling === "row", [heads, rows, columns] = data.shape;
  if (data.scaling === "all") return null;
  const count = by ? rows : columns, tops = new Float64Array(heads * count);
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < rows * columns; i++) {
      const row = Math.floor(i / columns), column = i % columns, at = head * count + (by ? row : column);
      tops[at] = Math.max(tops[at], weight(state, head, row, column));
    }
  }
  return tops;
}

// The lines of one head from some rows to some columns, drawn in steps of strength.
// Divided by the root of the heads, twelve heads are as bright together as one alone.
function strokes(state, pen, head, rows, columns) {
  const {data, place, stage, ink} = state, active = activeHeads(state).length;
  const bins = Array.from({length: BINS + 1}, () => null), shift = ROW / 2 - stage.scrollTop;
  const bend = (place.right - place.left) * 0.4;
  for (let row = rows[0]; row < rows[1]; row++) {
    for (let column = columns[0]; column < columns[1]; column++) {
      const w = strong(state, head, row, column);
      if (w < 0.004) continue;
      const bin = Math.min(BINS, Math.ceil(Math.sqrt(w) * BINS)), y = row * ROW + shift, z = column * ROW + shift;
      const path = bins[bin] ??= new Path2D();
      path.moveTo(place.left + 6, y);
      path.bezierCurveTo(place.left + bend, y, place.right - bend, z, place.right - 6, z);
    }
  }
  bins.forEach((path, bin) => {
    const strength = (bin / BINS) ** 2, opacity = strength / Math.sqrt(active);
    if (!path || opacity < 0.006) return;
    pen.strokeStyle = hueOf(state, head, Math.min(1, opacity));
    pen.lineWidth = 1 + 1.5 * strength;
    pen.stroke(path);
  });
}

function tokens(state, pen, side, pointed) {
  const {data, ink, place, stage} = state, list = side ? data.columns : data.rows;
  const first = Math.max(0, Math.floor(stage.scrollTop / ROW));
  const last = Math.min(list.length, Math.ceil((stage.scrollTop + stage.clientHeight) / ROW));
  const edge = side ? place.right : place.left, heads = activeHeads(state);
  for (const [a, b] of data.groups[side]) {
    bracket(pen, ink, side ? edge - 1 : edge + 1, a * ROW - stage.scrollTop, (b + 1 - a) * ROW, side ? 3 : -3);
  }
  pen.textBaseline = "middle";
  pen.textAlign = side ? "left" : "right";
  for (let at = first; at < last; at++) {
    const y = at * ROW - stage.scrollTop, own = pointed?.side === side && pointed.at === at;
    if (pointed && pointed.side !== side) {
      // One sliver a head: how much of it goes to this partner.
      const wide = place.label / heads.length;
      heads.forEach((head, i) => {
        const [row, column] = side ? [pointed.at, at] : [at, pointed.at];
        pen.fillStyle = hueOf(state, head, 0.6 * strong(state, head, row, column));
        pen.fillRect((side ? edge : edge - place.label) + i * wide, y + 1, wide, ROW - 2);
      });
    }
    if (own) {
      pen.fillStyle = css(ink.text, 0.1);
      pen.fillRect(side ? edge : edge - place.label, y + 1, place.label, ROW - 2);
    }
    pen.font = `${own ? "600 " : ""}13px ${ink.mono}`;
    pen.fillStyle = css(data.muted[side].includes(at) ? ink.muted : ink.text);
    const text = fitted(pen, isolated(list[at]), place.label - 14);
    pen.fillText(text, side ? edge + 7 : edge - 7, y + ROW / 2 + 0.5);
  }
}

function paint(state) {
  const {data, stage, canvas, place} = state;
  if (!place) return;
  const height = stage.clientHeight, n = data.rows.length, m = data.columns.length;
  const [pen] = sized(canvas, place.width, height), pointed = shownToken(state);
  const first = Math.max(0, Math.floor(stage.scrollTop / ROW)), last = Math.ceil((stage.scrollTop + height) / ROW);
  pen.lineCap = "round";
  // Unless a token is pointed at, the lines of the queries on screen are drawn.
  const rows = !pointed ? [first, Math.min(n, last)] : pointed.side === 0 ? [pointed.at, pointed.at + 1] : [0, n];
  const columns = pointed?.side === 1 ? [pointed.at, pointed.at + 1] : [0, m];
  for (const head of activeHeads(state)) strokes(state, pen, head, rows, columns);
  tokens(state, pen, 0, pointed);
  tokens(state, pen, 1, pointed);
  tell(state, pointed);
}

function tell(state, pointed) {
  const {data} = state;
  if (!pointed) return tellLine(state.root, data.words);
  const {side, at} = pointed, count = (side ? data.rows : data.columns).length;
  let best = [0, -1, 0], equal = 0;
  for (const head of activeHeads(state)) for (let i = 0; i < count; i++) {
    const w = side ? weight(state, head, i, at) : weight(state, head, at, i);
    if (w > best[0]) [best, equal] = [[w, i, head], 0];
    else if (w === best[0] && w > 0) equal++;
  }
  const parts = side ? {column: data.columns[at], row: data.rows[best[1]]}
    : {row: data.rows[at], column: data.columns[best[1]]};
  const {none, most, also} = data.words, value = sent(state, best[0]);
  const ties = equal ? also.replace("{count}", equal) : "";
  const said = best[1] < 0 ? none[side] : `${most[side]}: {value}, ${data.names[best[2]]}${ties}`;
  tellLine(state.root, data.words, [said, {...parts, value}]);
}

// The largest weights of the heads that are drawn.
function describeLines(state) {
  const {data} = state, rows = data.rows.length, columns = data.columns.length, cells = rows * columns;
  const at = i => [Math.floor(i / cells), Math.floor(i / columns) % rows, i % columns];
  const largest = largestOf(state.active.length * cells, i => state.active[at(i)[0]] ? weight(state, ...at(i)) : 0);
  putInWords(state.root, state.canvas, data.words.title, largest.map(i => {
    const [head, row, column] = at(i);
    return `${data.rows[row]} attends to ${data.columns[column]}: ${sent(state, weight(state, head, row, column))}, ${data.names[head]}`;
  }));
}

// ---- running --------------------------------------------------------------------------

function show(state) {
  const {data, stage, canvas, ink, root} = state;
  if (state.fresh) {
    state.fresh = false;
    state.codes = joined(data.planes.values);
    state.singles = singlesOf(data);
    state.tops = topsOf(state);
    if (!inside(state, state.locked)) state.locked = null;
    state.hovered = null;
  }
  choose(state);
  chips(state);
  if (!stage.clientWidth) return;
  const pen = canvas.getContext("2d");
  pen.font = `600 13px ${ink.mono}`;
  const longest = [...data.rows, ...data.columns]
    .reduce((most, text) => Math.max(most, pen.measureText(text).width), 24);
  const width = Math.min(stage.clientWidth, WIDEST);
  const label = Math.ceil(Math.min(longest + 16, width * 0.3));
  state.place = {width, label, left: label, right: width - label};
  const length = ROW * Math.max(data.rows.length, data.columns.length);
  needs(state, length + 8);
  root.querySelector(".length").style.height = `${length}px`;
  Object.assign(canvas.style, {width: `${width}px`, height: `${stage.clientHeight}px`});
  canvas.setAttribute("aria-label", `${data.words.title}: lines from ${data.rows.length} ${data.words.row} tokens to ` +
    `${data.columns.length} ${data.words.column} tokens. Arrow keys move, Escape unpins.`);
  const end = data.scaling === "all" ? sent(state, data.top) : `the maximum of the ${data.scaling}`;
  const full = `weight${end === "1.00" ? "" : ` ÷ ${end}`}${data.log ? " on a log scale," : ""}`;
  root.querySelector(".notes").textContent = `a line's opacity: ${full}${data.names.length > 1 ? ", ÷ √n where n heads are drawn" : ""}` +
    (data.faint ? ` · weights under ${data.faint} not drawn` : "");
  describeLines(state);
  paint(state);
}

publish("lines", ".lines", make, show);

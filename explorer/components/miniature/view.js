// The pass in small: streams, the strongest edges, and a button for each part of it.

import {css, element, MOST, news, publish, putInWords, rgb, sized, three} from "../shared.js";

function make(state) {
  state.chosen = () => state.data && listen(state);
  state.stage.addEventListener("click", event => {
    const {height} = state.place ?? {}, box = state.stage.getBoundingClientRect();
    if (!height) return;
    const level = (state.place.floor - (event.clientY - box.top)) / (state.place.floor - state.place.top);
    const layers = Math.max(...state.data.stacks.map(stack => stack.layers));
    if (level < 0) go(state, state.data.parts[0][0], -1);
    else if (level > 1) go(state, state.data.parts.at(-1)[0], -1);
    else go(state, "layer", Math.min(layers - 1, Math.floor(level * layers)));
  });
}

const go = (state, name, at) => state.component.setTriggerValue("go", [name, at]);

function listen(state) {
  const choice = news(state);
  if (!choice) return;
  const [stack, layer, ...lit] = choice;
  // Of another model the choice may be here before the pass: a stack that this one has not.
  const at = state.data.stacks.findIndex(each => each.name === stack);
  state.layer = at < 0 ? null : {stack: at, layer};
  state.lit = lit;
  buttons(state);
  if (state.place) paint(state);
}

function buttons(state) {
  const {data, lit} = state;
  state.root.querySelector(".parts").replaceChildren(...data.parts.map(([name, title], at) => {
    const button = element("button", lit?.[at] ? "lit" : "", title);
    button.type = "button";
    if (lit?.[at]) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => go(state, name, -1));
    return button;
  }).reverse());
}

function paint(state) {
  const {stage, canvas, data, ink, lit, layer} = state;
  const width = stage.clientWidth, height = stage.clientHeight;
  const [pen] = sized(canvas, width, height), top = 10, floor = height - 10;
  state.place = {width, height, top, floor};
  const [stream, attention, mlp] = THEME[ink.dark ? "dark" : "light"].series.map(rgb);
  const apart = 12, columns = data.stacks.reduce((sum, stack) => sum + stack.tokens, 0);
  const step = (width - 8 - apart * (data.stacks.length - 1)) / columns;
  const on = name => !lit || !lit.includes(1) || lit[data.parts.findIndex(part => part[0] === name)];
  const faint = (name, alpha) => alpha * (on(name) ? 1 : 0.28);
  let left = 4;
  const lefts = data.stacks.map(stack => { const at = left; left += stack.tokens * step + apart; return at; });
  const x = (s, i) => lefts[s] + (i + 0.5) * step;
  const y = (s, level) => floor - level / data.stacks[s].layers * (floor - top);
  if (layer && on("attention") && lit?.includes(1)) {
    pen.fillStyle = css(ink.accent, 0.16);
    const s = layer.stack, high = y(s, layer.layer) - y(s, layer.layer + 1);
    pen.fillRect(lefts[s], y(s, layer.layer + 1), data.stacks[s].tokens * step, Math.max(3, high));
  }
  data.stacks.forEach((stack, s) => {
    const values = data.planes[`${stack.name}.streams`], n = stack.tokens;
    for (let i = 0; i < n; i++) {
      pen.fillStyle = css(ink.border);
      pen.fillRect(x(s, i) - 0.5, top, 1, floor - top);
      for (let level = 0; level < stack.layers; level++) {
        const value = Math.max(values[level * n + i], values[(level + 1) * n + i]) / 255;
        if (value < 0.02) continue;
        const wide = 0.6 + 2.6 * Math.sqrt(value);
        pen.fillStyle = css(stream, faint("stream", 0.25 + 0.75 * Math.sqrt(value)));
        pen.fillRect(x(s, i) - wide / 2, y(s, level + 1), wide, y(s, level) - y(s, level + 1));
      }
      pen.fillStyle = css(on("tokens") || on("embedding") || on("positions") ? ink.text : ink.muted,
        on("tokens") || on("embedding") || on("positions") ? 0.75 : 0.3);
      pen.fillRect(x(s, i) - Math.min(4, step * 0.4), floor + 3, Math.min(8, step * 0.8), 4);
      if (s === data.stacks.length - 1) {
        pen.fillStyle = css(on("answer") ? ink.text : ink.muted, on("answer") ? 0.75 : 0.3);
        pen.fillRect(x(s, i) - Math.min(4, step * 0.4), top - 7, Math.min(8, step * 0.8), 4);
      }
    }
    const through = data.planes[`${stack.name}.mlp`];
    for (let at = 0; at < stack.layers * n; at++) {
      const side = Math.min(step * 0.6, 5) * Math.sqrt(through[at] / 255), level = Math.floor(at / n);
      if (side < 1) continue;
      pen.fillStyle = css(mlp, faint("mlp", 0.9));
      pen.fillRect(x(s, at % n) - side / 2, y(s, level + 0.74) - side / 2, side, side);
    }
  });
  for (const [to, from, at, query, key, value] of data.edges) {
    const y1 = y(to, at + 0.3), y0 = from === to ? y(from, at) : y(from, data.stacks[from].layers);
    pen.strokeStyle = css(attention, faint("attention", 0.3 + 0.7 * Math.sqrt(value)));
    pen.lineWidth = 0.6 + 3 * Math.sqrt(value);
    pen.beginPath();
    pen.moveTo(x(from, key), y0);
    pen.quadraticCurveTo(x(from, key), y1, x(from, key) + Math.sign(x(to, query) - x(from, key)) * 6, y1);
    pen.lineTo(x(to, query), y1);
    pen.stroke();
  }
}

function show(state) {
  if (state.fresh) {
    state.fresh = false;
    state.agreed = undefined;
    buttons(state);
  }
  listen(state);
  state.canvas.setAttribute("aria-label", state.data.title);
  putInWords(state.root, state.canvas, state.data.title, state.data.edges.slice(-MOST).reverse().map(
    ([, , layer, query, key, value]) => `token ${key} → token ${query} in layer ${layer}: ${three(100 * value)} %`));
  if (state.stage.clientWidth) paint(state);
}

publish("miniature", ".miniature", make, show);

// The curves over the steps of a training, on a logarithmic scale from step 0 on.

import {css, sized, three} from "../shared.js";

const EDGES = {left: 44, right: 44, bottom: 36}, LINE = 18;
const DASHES = [[], [5, 3], [2, 2], [8, 3, 2, 3]];

const along = step => Math.log10(1 + step);

function plot(state) {
  const {canvas, data, ink, stage} = state, width = stage.clientWidth, height = stage.clientHeight;
  const last = Math.max(1, ...data.steps, ...data.curves.flatMap(({points}) => points.map(([step]) => step)));
  const losses = data.curves.filter(({share}) => !share).flatMap(({points}) => points.map(([, value]) => value));
  const top = Math.max(1e-9, ...losses.filter(Number.isFinite));
  const [pen] = sized(canvas, width, height), inner = width - EDGES.left - EDGES.right;
  pen.font = `12px ${ink.sans}`;
  const names = legendOf(pen, data, width), start = LINE / 2 + (names.at(-1)?.y ?? 0);
  const tall = height - start - EDGES.bottom;
  const x = step => EDGES.left + along(step) / along(last) * inner;
  const y = (value, share) => start + tall * (1 - value / (share ? 1 : top));
  return {pen, width, height, last, top, names, start, x, y, tall};
}

export function paintCurves(state) {
  const {data, ink} = state, place = plot(state), {pen, start, x, tall, width, height, top} = place;
  state.place_of = x;
  pen.textBaseline = "middle";
  pen.strokeStyle = css(ink.border);
  pen.lineWidth = 1;
  pen.strokeRect(EDGES.left + 0.5, start + 0.5, width - EDGES.left - EDGES.right - 1, tall);
  pen.fillStyle = css(ink.muted);
  axis(pen, data, place);
  pen.textAlign = "right";
  pen.fillText(three(top), EDGES.left - 6, start + 4);
  pen.fillText("0", EDGES.left - 6, start + tall);
  pen.fillText("loss", EDGES.left - 6, start + tall / 2);
  if (data.curves.some(({share}) => share)) {
    pen.textAlign = "left";
    pen.fillText("1", width - EDGES.right + 6, start + 4);
    pen.fillText("0", width - EDGES.right + 6, start + tall);
  }
  data.curves.forEach((curve, i) => line(pen, ink, curve, i, place));
  legend(pen, ink, data, place);
  for (const [step, words] of data.marks) mark(pen, ink, x(step), words, place);
  const now = Math.round(x(data.steps[state.at])) + 0.5;
  pen.setLineDash([]);
  pen.strokeStyle = css(ink.accent);
  pen.lineWidth = 2;
  pen.stroke(new Path2D(`M${now} ${start}V${height - EDGES.bottom}`));
}

const colourOf = (ink, curve) => curve.share ? ink.accent : ink.text;

function line(pen, ink, curve, i, {x, y}) {
  pen.strokeStyle = css(colourOf(ink, curve), curve.share ? 0.9 : 0.75);
  pen.lineWidth = 1.5;
  pen.setLineDash(DASHES[i % DASHES.length]);
  pen.beginPath();
  let drawn = false;
  for (const [step, value] of curve.points) {
    if (!Number.isFinite(value)) { drawn = false; continue; }
    pen[drawn ? "lineTo" : "moveTo"](x(step), y(value, curve.share));
    drawn = true;
  }
  pen.stroke();
  pen.setLineDash([]);
}

// The names of the curves over the frame, each behind a piece of its line, in as many lines as they need.
function legendOf(pen, {curves}, width) {
  let x = EDGES.left, y = 8;
  return curves.map(curve => {
    const words = curve.name + (curve.share ? " (right)" : ""), wide = 30 + pen.measureText(words).width;
    if (x > EDGES.left && x + wide > width) { x = EDGES.left; y += LINE; }
    const name = {words, x, y};
    x += wide + 15;
    return name;
  });
}

function legend(pen, ink, {curves}, {names}) {
  pen.textAlign = "left";
  names.forEach(({words, x, y}, i) => {
    pen.strokeStyle = css(colourOf(ink, curves[i]));
    pen.lineWidth = 1.5;
    pen.setLineDash(DASHES[i % DASHES.length]);
    pen.stroke(new Path2D(`M${x} ${y}H${x + 20}`));
    pen.setLineDash([]);
    pen.fillStyle = css(ink.text);
    pen.fillText(words, x + 25, y);
  });
}

function axis(pen, {steps}, {x, height}) {
  let free = -Infinity;
  pen.textAlign = "right";
  pen.fillText("training step (log)", x(steps.at(-1)), height - 8);
  pen.textAlign = "center";
  for (const step of steps) {
    const words = step.toLocaleString("en-US"), half = pen.measureText(words).width / 2 + 4;
    if (x(step) - half < free) continue;
    pen.fillText(words, x(step), height - EDGES.bottom + 10);
    free = x(step) + half;
  }
}

function mark(pen, ink, at, words, {start, tall, width}) {
  pen.strokeStyle = css(ink.muted);
  pen.lineWidth = 1;
  pen.setLineDash([2, 3]);
  pen.stroke(new Path2D(`M${Math.round(at) + 0.5} ${start}v${tall}`));
  pen.setLineDash([]);
  const isRight = at > width / 2, wide = pen.measureText(words).width + 8;
  pen.fillStyle = css(ink.background, 0.9);  // a curve may pass under it
  pen.fillRect(isRight ? at - wide - 2 : at + 2, start + 3, wide, 18);
  pen.fillStyle = css(ink.text);
  pen.textAlign = isRight ? "right" : "left";
  pen.fillText(words, at + (isRight ? -6 : 6), start + 12);
}

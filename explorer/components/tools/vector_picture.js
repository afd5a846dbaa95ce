// The picture of a view as vector graphics, exactly as its canvases have it: its code draws again,
// with pens that note what they draw.

const SVG = "http://www.w3.org/2000/svg", REVOKED_AFTER = 60_000;
const RADIANS = Math.PI / 180;
const recordings = new WeakMap();
let hatches = 0;  // so far, each with a name of its own in the file
const beside = document.implementation.createDocument(SVG, "svg");  // a page would load its images

function node(tag, attributes, ...inside) {
  const made = beside.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

const round = number => String(Math.round(number * 1000) / 1000);
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u2068\u2069\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
// Without the letters that no file of this kind may have, and those that isolate directions.
const written = text => String(text).replace(FORBIDDEN, "");

// ---- paths ------------------------------------------------------------------------

// What a path's method adds to its description, in the words of SVG.
const STEPS = {
  moveTo: (x, y) => `M${round(x)} ${round(y)}`,
  lineTo: (x, y) => `L${round(x)} ${round(y)}`,
  quadraticCurveTo: (...at) => `Q${at.map(round).join(" ")}`,
  bezierCurveTo: (...at) => `C${at.map(round).join(" ")}`,
  closePath: () => "Z",
  rect: (x, y, w, h) => `M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`,
  roundRect: (x, y, w, h, radius) => {
    const r = Math.max(0, Math.min(Number(radius) || 0, w / 2, h / 2));
    const corner = (a, b) => `a${round(r)} ${round(r)} 0 0 1 ${round(a)} ${round(b)}`;
    return `M${round(x + r)} ${round(y)}h${round(w - 2 * r)}${corner(r, r)}v${round(h - 2 * r)}${corner(-r, r)}` +
      `h${round(2 * r - w)}${corner(-r, -r)}v${round(2 * r - h)}${corner(r, -r)}Z`;
  },
  arc: (x, y, r, from, to) => {
    const end = Math.min(to, from + 360 * RADIANS), half = (from + end) / 2;
    const [first, ...more] = [from, half, end].map(a => `${round(x + r * Math.cos(a))} ${round(y + r * Math.sin(a))}`);
    return `M${first}${more.map(at => `A${round(r)} ${round(r)} 0 0 1 ${at}`).join("")}`;
  },
};

// While a picture is drawn, a path also notes its description.
const Native = globalThis.Path2D;
class NotedPath extends Native {
  constructor(from) {
    super(from);
    this.steps = typeof from === "string" ? from : from?.steps ?? "";
  }
}
for (const [name, step] of Object.entries(STEPS)) {
  NotedPath.prototype[name] = function (...how) {
    this.steps += step(...how);
    return Native.prototype[name].apply(this, how);
  };
}

// ---- a pen that notes what it draws --------------------------------------------------

// A colour of a canvas is #rrggbb or rgba(r, g, b, a), which not every program reads.
function paintOf(style, kind, recording) {
  if (typeof style !== "string") return {[kind]: `url(#${recording.pattern(style)})`};
  const [, red, green, blue, alpha] = /^rgba\((\d+), (\d+), (\d+), ([\d.e-]+)\)$/.exec(style) ?? [];
  return alpha === undefined ? {[kind]: style}
    : {[kind]: `rgb(${red},${green},${blue})`, [`${kind}-opacity`]: alpha};
}

class Recording {
  constructor(pen, width, height) {
    Object.assign(this, {pen, width, height, group: node("g", {}), steps: "", patterns: new Map()});
    this.base = pen.getTransform().inverse();
  }

  add(tag, attributes, ...inside) {
    const {a, b, c, d, e, f} = this.base.multiply(this.pen.getTransform()), at = [a, b, c, d, e, f].map(round);
    const opacity = this.pen.globalAlpha;
    const common = {
      transform: at.join() === "1,0,0,1,0,0" ? undefined : `matrix(${at.join(" ")})`,
      opacity: opacity < 1 ? round(opacity) : undefined,
    };
    this.group.append(node(tag, {...attributes, ...common}, ...inside));
  }

  filled() { return {...paintOf(this.pen.fillStyle, "fill", this), stroke: undefined}; }

  stroked() {
    const {pen} = this, dash = pen.getLineDash();
    return {
      fill: "none", ...paintOf(pen.strokeStyle, "stroke", this), "stroke-width": round(pen.lineWidth),
      "stroke-linecap": pen.lineCap === "butt" ? undefined : pen.lineCap,
      "stroke-linejoin": pen.lineJoin === "miter" ? undefined : pen.lineJoin,
      "stroke-dasharray": dash.length ? dash.map(round).join(" ") : undefined,
    };
  }

  // Fine diagonal lines, as `hatch` in shared.js draws them.
  pattern(style) {
    if (!this.patterns.has(style)) {
      const {gap, colour, wide} = style.lines, id = `hatch-${hatches += 1}`;
      const d = [-gap, 0, gap].map(by => `M${by - 1} ${gap + 1}L${by + gap + 1} -1`).join("");
      const line = node("path", {d, fill: "none", ...paintOf(colour, "stroke", this), "stroke-width": wide});
      this.group.append(node("pattern", {id, width: gap, height: gap, patternUnits: "userSpaceOnUse"}, line));
      this.patterns.set(style, id);
    }
    return this.patterns.get(style);
  }

  text(text, x, y, look) {
    const {pen} = this, baseline = pen.textBaseline, ascent = () => pen.measureText(text).fontBoundingBoxAscent;
    const before = ascent();
    pen.textBaseline = "alphabetic";
    const down = ascent() - before;
    pen.textBaseline = baseline;
    const [, style, weight, size, family] = /^(italic )?(\d+ |bold )?([\d.]+)px (.*)$/.exec(pen.font) ?? [];
    this.add("text", {
      ...look, x: round(x), y: round(y + down), "font-size": size, "font-family": family,
      "font-style": style?.trim(), "font-weight": weight?.trim(), "xml:space": "preserve",
      // As wide as on the screen, in whatever font.
      textLength: round(pen.measureText(text).width), lengthAdjust: "spacingAndGlyphs",
      "text-anchor": {center: "middle", right: "end", end: "end"}[pen.textAlign],
    }, written(text));
  }

  // Another picture stays vectors where it has been noted too; else it is an image of its pixels.
  image(source, ...how) {
    const [sx, sy, sw, sh, x, y, w, h] = how.length > 4 ? how : [0, 0, source.width, source.height, ...how];
    const wide = w ?? source.width, high = h ?? source.height, noted = recordings.get(source);
    if (noted && how.length <= 4) {
      const by = `translate(${round(x)} ${round(y)}) scale(${round(wide / noted.width)} ${round(high / noted.height)})`;
      this.add("g", {}, node("g", {transform: by}, noted.group.cloneNode(true)));
      return;
    }
    const canvas = Object.assign(document.createElement("canvas"), {width: Math.max(1, sw), height: Math.max(1, sh)});
    canvas.getContext("2d").drawImage(source, sx, sy, sw, sh, 0, 0, sw, sh);
    this.add("image", {
      x: round(x), y: round(y), width: round(wide), height: round(high), href: canvas.toDataURL("image/png"),
      preserveAspectRatio: "none", style: this.pen.imageSmoothingEnabled ? undefined : "image-rendering:pixelated",
    });
  }
}

// What each method of a pen adds to a recording.
const NOTED = {
  beginPath: it => { it.steps = ""; },
  fill: (it, path) => it.add("path", {d: path?.steps ?? it.steps, ...it.filled()}),
  stroke: (it, path) => it.add("path", {d: path?.steps ?? it.steps, ...it.stroked()}),
  fillRect: (it, ...box) => it.add("path", {d: STEPS.rect(...box), ...it.filled()}),
  strokeRect: (it, ...box) => it.add("path", {d: STEPS.rect(...box), ...it.stroked()}),
  fillText: (it, text, x, y) => it.text(text, x, y, it.filled()),
  strokeText: (it, text, x, y) => it.text(text, x, y, it.stroked()),
  drawImage: (it, ...how) => it.image(...how),
};
for (const [name, step] of Object.entries(STEPS)) NOTED[name] = (it, ...how) => { it.steps += step(...how); };

function noting(context, canvas, width, height) {
  const recording = new Recording(context, width, height);
  recordings.set(canvas, recording);
  return new Proxy(context, {
    get(pen, name) {
      const value = pen[name];
      if (typeof value !== "function") return value;
      return (...how) => {
        NOTED[name]?.(recording, ...how);
        return value.apply(pen, how);
      };
    },
    set(pen, name, value) {
      pen[name] = value;
      return true;
    },
  });
}

// ---- the file -----------------------------------------------------------------------

function drawn({root, draw}, title) {
  Object.assign(globalThis, {explorerPen: noting, Path2D: NotedPath});
  try {
    draw();
  } finally {
    Object.assign(globalThis, {explorerPen: undefined, Path2D: Native});
  }
  const parts = [...root.querySelectorAll("canvas")].filter(each => recordings.has(each) && each.getClientRects().length);
  if (!parts.length) return null;
  const boxes = parts.map(each => each.getBoundingClientRect());
  const [left, top] = ["left", "top"].map(side => Math.min(...boxes.map(box => box[side])));
  const [right, bottom] = ["right", "bottom"].map(side => Math.max(...boxes.map(box => box[side])));
  const width = round(right - left), height = round(bottom - top);
  const ground = getComputedStyle(root).getPropertyValue("--st-background-color").trim() || "#ffffff";
  return new XMLSerializer().serializeToString(node(
    "svg", {width, height, viewBox: `0 0 ${width} ${height}`},
    node("title", {}, written(title)), node("rect", {width, height, fill: ground}),
    ...parts.map((each, at) => node("g", {
      transform: `translate(${round(boxes[at].left - left)} ${round(boxes[at].top - top)})`,
    }, recordings.get(each).group)),
  ));
}

export default function ({data: [name, title, file], parentElement}) {
  const button = parentElement.querySelector("button"), of = () => globalThis.explorerPictures?.get(name);
  button.hidden = !of()?.root.querySelector("canvas");
  button.onclick = () => {
    const picture = of()?.root.isConnected && drawn(of(), title);
    if (!picture) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([picture], {type: "image/svg+xml"}));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), REVOKED_AFTER);  // it is read behind the click
  };
}

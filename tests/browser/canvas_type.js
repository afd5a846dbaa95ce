// Laid before a page opens: each canvas notes what is written on it, in its own pixels.
for (const {prototype} of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
  const own = prototype.fillText;
  prototype.fillText = function (text, ...rest) {
    const canvas = this.canvas, {a, b} = this.getTransform();
    const size = parseFloat(/([\d.]+)px/.exec(this.font)[1]) * Math.hypot(a, b);
    (canvas.written ??= new Map()).set(String(text), size);
    return own.call(this, text, ...rest);
  };
  const draw = prototype.drawImage;
  prototype.drawImage = function (picture, ...to) {
    const {a, b} = this.getTransform(), from = to.length > 4 ? to[2] : picture.width;
    const across = to.length > 4 ? to[6] : to[2] ?? picture.width, scale = Math.hypot(a, b) * across / from;
    for (const [text, size] of picture.written ?? []) {
      (this.canvas.written ??= new Map()).set(text, size * scale);
    }
    return draw.call(this, picture, ...to);
  };
  const clear = prototype.clearRect;
  prototype.clearRect = function (...box) {
    this.canvas.written?.clear();
    return clear.apply(this, box);
  };
}

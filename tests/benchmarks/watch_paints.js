// By event, the script of its listeners and of the frames before the next: the first listener of
// the window is called before those of the view, the last after them.
() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.spent = [];
  let begun = 0;
  addEventListener("pointermove", () => { begun = performance.now(); }, {capture: true});
  addEventListener("pointermove", () => { window.spent.push(performance.now() - begun); });
  window.requestAnimationFrame = paint => ask(now => {
    const start = performance.now();
    paint(now);
    if (window.spent.length) window.spent[window.spent.length - 1] += performance.now() - start;
  });
}

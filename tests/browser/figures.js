// Where the figures of a page stand: the top of the first, the share of the page that all in sight
// cover, and whether each is as large as its picture needs or, presented, has most of the window.
() => {
  const main = document.querySelector("[data-testid=stMain]").getBoundingClientRect();
  const left = Math.max(main.left, 0), figures = [], presents = document.querySelector(".presenting");
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect().top ?? innerHeight;
  for (const host of document.querySelectorAll("[data-testid=stMain] *")) {
    const stage = host.closest("[class*=st-key-stage-]"), chart = host.matches("[class*=st-key-stage-chart-]") && host;
    const figure = host.shadowRoot?.querySelector(stage && presents ? ".view" : ".view:has(canvas), .view:has(table)") || chart;
    const {top, bottom, left: x, right} = figure ? figure.getBoundingClientRect() : {top: innerHeight};
    if (top < panel - 40 && right - x > 100 && bottom - top > 80) figures.push({stage, figure, top, bottom, x, right});
  }
  const size = 8, isIn = (x, y) => figures.some(each => each.x <= x && x < each.right && each.top <= y && y < each.bottom);
  let all = 0, covered = 0;
  for (let y = 0; y < panel; y += size) for (let x = left; x < innerWidth; x += size) {
    all += 1;
    covered += Number(isIn(x, y));
  }
  const px = (element, name) => parseFloat(element.style.getPropertyValue(name));
  const fills = figures.every(({stage, figure, top, bottom}) => !stage ||
    px(figure, "--need") < px(stage, "--room") - 4 || bottom > panel - 24 && (!presents || bottom - top > 0.7 * panel));
  const wide = Math.max(...figures.map(each => each.right)) - Math.min(...figures.map(each => each.x));
  return [Math.min(...figures.map(each => each.top)), covered / all, fills && wide > (presents ? 0.9 : 0) * (innerWidth - left)];
}

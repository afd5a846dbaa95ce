// Where the figures of a page stand: the top of the first, the share of the page that all in sight
// cover, and whether each is as large as its picture needs, whatever the window has.
() => {
  const main = document.querySelector("[data-testid=stMain]").getBoundingClientRect();
  const left = Math.max(main.left, 0), figures = [];
  for (const stage of document.querySelectorAll("[class*=st-key-stage-]")) {
    const host = [...stage.querySelectorAll("*")].find(each => each.shadowRoot?.querySelector(".view"));
    const view = host?.shadowRoot.querySelector(".view") ?? stage;
    const {top, bottom, left: x, right} = view.getBoundingClientRect();
    if (top < innerHeight && right - x > 100 && bottom - top > 60) figures.push({stage, view, top, bottom, x, right});
  }
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect().top ?? innerHeight;
  const size = 8, isIn = (x, y) => figures.some(each => each.x <= x && x < each.right && each.top <= y && y < each.bottom);
  let all = 0, covered = 0;
  for (let y = 0; y < panel; y += size) for (let x = left; x < innerWidth; x += size) {
    all += 1;
    covered += Number(isIn(x, y));
  }
  const px = (style, name) => parseFloat(style.getPropertyValue(name));
  const needs = figures.map(({stage, view}) => px(view.style, "--need") < px(stage.style, "--room") - 4);
  return [Math.round(Math.min(...figures.map(each => each.top))), covered / all, needs.length > 0 && needs.every(Boolean)];
}

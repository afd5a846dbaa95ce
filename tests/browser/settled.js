// Nothing moves or fades, the fonts are there, and three frames look like the one before.
async seconds => {
  const end = performance.now() + 1000 * seconds;
  const looked = "[data-testid=stApp], [data-testid=stMain], [data-testid=stSidebar], h1, " +
    "summary, [role=dialog], [data-testid=stPopoverBody], [class*=st-key-], .view, canvas";
  const roots = () => {
    const found = [document];
    for (const root of found) {
      for (const {shadowRoot} of root.querySelectorAll("*")) if (shadowRoot) found.push(shadowRoot);
    }
    return found;
  };
  const moves = ({playState, effect}) =>
    playState === "running" && Number.isFinite(effect?.getComputedTiming().endTime);
  const look = each => {
    const {x, y, width, height} = each.getBoundingClientRect();
    const {color, backgroundColor, opacity} = getComputedStyle(each);
    return [x, y, width, height, color, backgroundColor, opacity, each.dataset.cells].join();
  };
  let before = [], same = 0;
  while (same < 3) {
    await document.fonts.ready;
    await new Promise(requestAnimationFrame);
    const now = roots().flatMap(root => [
      ...root.getAnimations().filter(moves).map(each => `moves ${performance.now()}`),
      ...[...root.querySelectorAll(looked)].map(look),
    ]);
    const changed = now.find((each, at) => each !== before[at]) ?? before[now.length];
    same = changed === undefined ? same + 1 : 0;
    before = now;
    if (performance.now() > end) throw new Error(`the page still changes: ${changed}`);
  }
}

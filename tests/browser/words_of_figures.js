// Every figure of a page, and what it says of itself.
() => {
  const every = root => [...root.querySelectorAll("*")].flatMap(each =>
    [each, ...(each.shadowRoot ? every(each.shadowRoot) : [])]);
  const charts = "[data-testid=stVegaLiteChart], .stPlotlyChart";
  const isFigure = each => each.matches(`.view canvas, ${charts}`) &&
    !each.parentElement.closest(`${charts}, [data-testid=stDataFrame]`);
  return every(document).filter(isFigure).map(each => {
    const by = each.getAttribute("aria-describedby");
    const alone = each.closest("[aria-label]") ?? each.querySelector("[role=img][aria-label]");
    const text = by ? each.getRootNode().getElementById(by).textContent : "";
    return [`${each.tagName} ${each.className}`, text || alone?.getAttribute("aria-label") || ""];
  });
}

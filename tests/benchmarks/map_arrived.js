// From the navigation to the first task after the frame that has the map, or the bare page.
(() => {
  const seen = () => requestAnimationFrame(() => setTimeout(() => {
    window.arrived ??= performance.now();
  }));
  new PerformanceObserver(all => {
    if (all.getEntries().some(each => each.name.includes("pass_map"))) seen();
  }).observe({entryTypes: ["measure"]});
  new MutationObserver(() => {
    if (document.querySelector(".st-key-shown")?.textContent.includes("head 0")) seen();
  }).observe(document, {childList: true, subtree: true, characterData: true});
})()

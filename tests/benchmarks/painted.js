(([selector, count]) => {
  const all = document.getElementsByTagName("*"), seen = window.painted = {last: 0};
  const drawn = root => root?.querySelectorAll(selector).length ?? 0;
  const isAll = () => [...document.querySelectorAll(".host")]
    .reduce((sum, host) => sum + drawn(host.shadowRoot), drawn(document)) >= count;
  let size = -1, before = 0, still = 0, isDrawn = false;
  const frame = now => {
    const isSame = all.length === size && now - before < 500;
    isDrawn = isSame && isDrawn || isAll();
    const isRead = document.readyState === "complete" && document.fonts.status === "loaded";
    still = isSame && isDrawn && isRead ? still + 1 : 0;
    [size, before] = [all.length, now];
    if (still < 2) seen.last = 0;
    if (still === 2) seen.last = performance.now();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})

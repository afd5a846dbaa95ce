// The main figure of a page takes the window that is left: each stage has the height between its own
// top and the end of the window as --room. What stands above may come late, so the stages are measured
// again whenever something on the page changes its size.

const BELOW = 8, FAR = 0.5;  // px, and a share of the window
const LEAST = matchMedia("(pointer: coarse)").matches ? 340 : 260;  // px: a phone on its side scrolls

// Further down the page a figure has most of a window to itself.
function roomOf(stage, main) {
  const {top} = main.getBoundingClientRect(), panel = document.querySelector(".st-key-lesson_panel");
  const all = innerHeight - top - (panel?.getBoundingClientRect().height ?? 0) - BELOW;
  const above = stage.getBoundingClientRect().top - top + main.scrollTop;
  return Math.floor(Math.max(LEAST, above < FAR * all ? all - above : 0.8 * all));
}

function measure() {
  const main = document.querySelector("[data-testid=stMain]");
  let changed = false;
  for (const stage of main?.querySelectorAll("[class*=st-key-stage-]") ?? []) {
    const room = `${roomOf(stage, main)}px`;
    if (stage.style.getPropertyValue("--room") === room) continue;
    stage.style.setProperty("--room", room);
    changed = true;
  }
  if (changed) document.dispatchEvent(new Event("explorer-room"));
}

export function watchStages() {
  if (globalThis.explorerStages) return;
  let waits = 0;
  const soon = () => { waits ||= requestAnimationFrame(() => { waits = 0; watch(); measure(); }); };
  const sizes = new ResizeObserver(soon), watched = new WeakSet();
  const watch = () => {
    for (const box of document.querySelectorAll("[data-testid=stMainBlockContainer], .st-key-lesson_panel")) {
      if (!watched.has(box)) sizes.observe(box);
      watched.add(box);
    }
  };
  globalThis.explorerStages = new MutationObserver(soon);
  globalThis.explorerStages.observe(document.body, {childList: true, subtree: true});
  addEventListener("resize", soon);
  soon();
}

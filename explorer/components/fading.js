// A stage that scrolls fades out where it goes on, with a sign. To be called again when it has changed.
export function fades(stage) {
  const marked = stage.matches(".stage") ? stage.closest(".view") : stage;
  const fade = () => {
    const {scrollLeft, scrollTop, clientWidth, clientHeight, scrollWidth, scrollHeight} = stage;
    const left = {right: scrollWidth - clientWidth - scrollLeft, bottom: scrollHeight - clientHeight - scrollTop};
    for (const [side, length] of Object.entries({left: scrollLeft, top: scrollTop, ...left})) {
      marked.style.setProperty(`--more-${side}`, length > 1 ? "1" : "0");
    }
  };
  stage.classList.add("fades");
  stage.addEventListener("scroll", fade, {passive: true});
  return fade;
}

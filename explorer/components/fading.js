// A stage that scrolls fades out where it goes on, with a sign. To be called again when it has changed.
export function fades(stage) {
  const marked = stage.matches(".stage") ? stage.closest(".view") : stage;
  const more = (side, length) => marked.style.setProperty(`--more-${side}`, length > 1 ? 1 : 0);
  const fade = () => {
    const {scrollLeft: x, scrollTop: y} = stage;
    more("left", x);
    more("top", y);
    more("right", stage.scrollWidth - stage.clientWidth - x);
    more("bottom", stage.scrollHeight - stage.clientHeight - y);
  };
  stage.classList.add("fades");
  stage.addEventListener("scroll", fade);
  return fade;
}

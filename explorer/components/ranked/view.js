// Heads in their order: a button for each, with its small picture, its place and its number.

function make(state) {
  const {root} = state;
  state.stage = root.querySelector(".stage");
  state.line = root.querySelector(".sentence");
  state.chosen = () => state.data && choose(state);
  state.stage.addEventListener("pointerleave", () => tell(state, null));
}

const title = ([layer, head]) => `layer ${layer}, head ${head}`;

function choose(state) {
  const choice = globalThis.explorerChoices?.get(state.data.name);
  if (choice) mark(state, choice);
}

function mark(state, choice) {
  state.data.items.forEach(({at}, i) => state.buttons[i].setAttribute(
    "aria-pressed", String(at[0] === choice[0] && at[1] === choice[1])));
}

function pick(state, item) {
  mark(state, item.at);
  state.component.setTriggerValue("picked", item.at);
}

function tell({line}, item) {
  line.classList.toggle("idle", !item);
  line.textContent = !item ? "Point at a head to read its value; click to choose it."
    : `${item.place}: ${title(item.at)}, ${item.value}; ${maximum(item.top)}`;
}

function build(state) {
  const {data, stage} = state;
  state.buttons = data.items.map(item => {
    const button = element("button");
    button.type = "button";
    button.setAttribute("aria-label", `${item.place}: ${title(item.at)}, ${item.value}`);
    button.append(element("canvas"), element("span", "name", title(item.at)),
      element("span", "place", item.place), element("span", "number", item.value));
    button.addEventListener("click", () => pick(state, item));
    button.addEventListener("pointerenter", () => tell(state, item));
    button.addEventListener("focus", () => tell(state, item));
    button.addEventListener("blur", () => tell(state, null));
    return button;
  });
  stage.style.setProperty("--across", data.across);
  stage.replaceChildren(...state.buttons.map(button => {
    const place = element("li");
    place.append(button);
    return place;
  }));
  tell(state, null);
}

// A pixel a cell; the style sheet makes it as large as there is room.
function draw(state) {
  const {data, buttons} = state, [queries, keys] = data.shape;
  let from = 0;
  for (const button of buttons) {
    const canvas = button.querySelector("canvas");
    Object.assign(canvas, {width: Math.max(1, keys), height: Math.max(1, queries)});
    const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
    for (let p = 0; p < 4 * queries * keys; p += 4) {
      const colour = shadeOf(state, from++);
      image.data.set([colour[0], colour[1], colour[2], 255], p);
    }
    pen.putImageData(image, 0, 0);
  }
}

function show(state) {
  const {data, root} = state;
  if (state.fresh) {
    build(state);
    state.fresh = false;
  }
  draw(state);
  const n = data.pooled;
  root.querySelector(".notes").textContent =
    (n > 1 ? `max over ${n}×${n} cells · ` : "") + "each head has its own colour scale" + greyed(data);
  choose(state);
}

export default publish("explorer_ranked", component => mount(component, ".ranked", make, show));

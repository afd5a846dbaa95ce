// The inside of an opened block, in the paper's order.

function drawInside(state) {
  const holder = state.root.querySelector(".inside");
  holder.replaceChildren();
}

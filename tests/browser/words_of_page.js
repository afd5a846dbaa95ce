// All that a person can read in the page: its words, its fields, its canvases and what they say.
() => {
  const found = [];
  const read = node => {
    if (node.nodeType === Node.TEXT_NODE) return found.push(node.textContent);
    if (![Node.ELEMENT_NODE, Node.DOCUMENT_FRAGMENT_NODE].includes(node.nodeType)) return;
    if (node.matches?.("style, script, .st-key-lesson_panel")) return;
    const style = node.matches && getComputedStyle(node);  // a fragment has none
    if (style?.display === "none" || style?.visibility === "hidden") return;
    const block = style && !style.display.startsWith("inline");
    if (block) found.push(" ");
    for (const name of ["aria-label", "aria-valuetext", "alt"]) {
      if (node.getAttribute?.(name)) found.push(` ${node.getAttribute(name)} `);
    }
    if (node.matches?.("input, textarea")) found.push(` ${node.value} `);
    if (node.painted) found.push(` ${node.painted.join(" ")} `);
    for (const cell of node.matches?.("canvas") ? node.querySelectorAll("td, th") : []) {
      found.push(` ${cell.textContent} `);  // a table that is painted has them beside
    }
    for (const child of (node.shadowRoot ?? node).childNodes) read(child);
    if (block) found.push(" ");
  };
  read(document.querySelector("[data-testid=stMain]"));
  return found.join("");
}

// All that can be read on the page, the smallest first: its size on the screen, the text, and
// the key of what it is part of.
() => {
  const found = [];
  const byName = element => {
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const key = [...at.classList ?? []].find(name => name.startsWith("st-key-"));
      if (key) return key.slice(7);
    }
    return "";
  };
  const hides = element => {
    const {width, height} = element.getBoundingClientRect();
    if (!element.checkVisibility() || width <= 1 || height <= 1) return true;
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const {opacity, visibility, clipPath} = getComputedStyle(at), clipped = clipPath.startsWith("inset(50%");
      if (opacity === "0" || visibility === "hidden" || clipped || at.getAttribute("aria-hidden") === "true") return true;
    }
    return false;
  };
  const zoom = element => element.currentCSSZoom ?? 1;
  const look = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) look(element.shadowRoot);
      if (element.tagName === "CANVAS") {
        const box = element.getBoundingClientRect(), shown = box.width * zoom(element) / (element.width || 1);
        if (!box.width || hides(element)) continue;
        for (const [text, size] of element.written ?? []) {
          if (text.trim()) found.push([size * shown, text, byName(element)]);
        }
        continue;
      }
      const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
      const typed = element.matches("input:not([type=range], [type=checkbox], [type=radio]), textarea, select");
      if (!own && !typed || element.closest("style, script, template, noscript, .katex-mathml")) continue;
      if (hides(element)) continue;
      const size = parseFloat(getComputedStyle(element).fontSize) * zoom(element);
      const ctm = element.ownerSVGElement ? element.getScreenCTM() : null;
      const scale = ctm ? Math.hypot(ctm.a, ctm.b) : 1;
      found.push([size * scale, (typed ? element.value : element.textContent).trim().slice(0, 40), byName(element)]);
    }
  };
  look(document.querySelector("[data-testid=stApp]"));
  return found.sort((a, b) => a[0] - b[0]);
}

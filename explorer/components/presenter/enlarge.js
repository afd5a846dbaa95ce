// The page enlarged by CSS zoom, for scripts as if the browser's own zoom were set.
//
// Under CSS zoom a script reads sizes of the page (clientWidth) and of the screen (clientX,
// getBoundingClientRect) that do not fit together: pointers miss, lists open in the wrong place,
// canvases blur. Here all that is measured on the screen is told in the page's own pixels, to our
// views and to the libraries alike; what is measured while nothing is enlarged is as it was.

export let enlargedBy = 1;

export function enlarge(by) {
  if (by !== 1) measureInside();
  enlargedBy = by;
  document.documentElement.style.zoom = by === 1 ? "" : String(by);
  document.documentElement.style.setProperty("--enlarged-by", String(by));
  dispatchEvent(new Event("resize"));
}

const smaller = box => new DOMRect(...[box.x, box.y, box.width, box.height].map(x => x / enlargedBy));

// Each getter's value becomes what `change` makes of it while the page is enlarged.
function tell(holder, names, change, applies = () => true) {
  for (const name of names) {
    const own = Object.getOwnPropertyDescriptor(holder, name);
    if (!own?.get) continue;
    const get = function () {
      const value = own.get.call(this);
      return enlargedBy !== 1 && applies(this) ? change(value) : value;
    };
    Object.defineProperty(holder, name, {...own, get});
  }
}

function answer(holder, names, make) {
  for (const name of names) {
    const own = holder[name];
    holder[name] = function (...given) {
      return enlargedBy === 1 ? own.apply(this, given) : make(own, this, given);
    };
  }
}

function measureInside() {
  if (globalThis.explorerMeasuresInside) return;
  globalThis.explorerMeasuresInside = true;
  const divide = value => value / enlargedBy, multiply = value => value * enlargedBy;
  const told = ["clientX", "clientY", "pageX", "pageY", "x", "y", "offsetX", "offsetY", "layerX", "layerY"];
  tell(MouseEvent.prototype, told, divide, event => event.isTrusted);
  if (globalThis.Touch) tell(Touch.prototype, ["clientX", "clientY", "pageX", "pageY"], divide);
  tell(globalThis, ["innerWidth", "innerHeight"], divide);
  tell(globalThis, ["devicePixelRatio"], multiply);
  tell(VisualViewport.prototype, ["width", "height"], divide);
  const isWindow = element => element === document.documentElement;
  tell(Element.prototype, ["clientWidth", "clientHeight"], divide, isWindow);
  for (const {prototype} of [Element, Range]) {
    answer(prototype, ["getBoundingClientRect"], (own, it) => smaller(own.call(it)));
    answer(prototype, ["getClientRects"], (own, it) => Array.from(own.call(it), smaller));
  }
  for (const {prototype} of [Document, ShadowRoot]) {
    answer(prototype, ["elementFromPoint", "elementsFromPoint"], (own, it, at) => own.apply(it, at.map(multiply)));
  }
  answer(SVGGraphicsElement.prototype, ["getScreenCTM"], (own, it) => {
    const whole = own.call(it), shrink = (it.ownerSVGElement ?? it).createSVGMatrix();
    return whole && shrink.scale(1 / enlargedBy).multiply(whole);
  });
}

// A pointer that everybody sees: a soft spot around the mouse, clear in the middle.

const SPOT = 112;  // page pixels across, as large as a hand at the screen
const HOLD = 400;  // ms: a key that is down for longer is held, and its end ends the spot

export function makeSpot() {
  const spot = document.createElement("div");
  spot.className = "presenter-spot";
  spot.setAttribute("aria-hidden", "true");
  spot.hidden = true;
  document.body.append(spot);
  const at = {x: innerWidth / 2, y: innerHeight / 2, since: null};
  const place = () => { spot.style.translate = `${at.x - SPOT / 2}px ${at.y - SPOT / 2}px`; };
  document.addEventListener("pointermove", event => {
    Object.assign(at, {x: event.clientX, y: event.clientY});
    if (!spot.hidden) place();
  }, {capture: true, passive: true});
  const turn = on => { spot.hidden = !on; place(); };
  return {
    turn,
    isOn: () => !spot.hidden,
    down(event) { if (!event.repeat) { at.since = spot.hidden ? event.timeStamp : null; turn(spot.hidden); } },
    up(event) {
      if (at.since !== null && event.timeStamp - at.since > HOLD) turn(false);
      at.since = null;
    },
  };
}

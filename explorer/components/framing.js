// In a list of items, those of one character stand in one frame, with the character before them.

import {element} from "./shared.js";

export function framed(groups, items) {
  const left = [...items];
  for (const [first, last, characters] of groups) {
    const frame = element("li", "group"), list = element("ol");
    list.append(...items.slice(first, last + 1));
    frame.append(list);
    if (characters) {
      list.setAttribute("aria-label", characters);
      const character = element("span", "character", characters);
      character.setAttribute("aria-hidden", "true");
      frame.prepend(character);
    }
    left[first] = frame;
    left.fill(null, first + 1, last + 1);
  }
  return left.filter(Boolean);
}

// The tokens under the columns of a picture of the pass.

import {css, fitted, isolated} from "./shared.js";

export const CHIP = 24, SLANTED = 52;

// A chip that is at most so wide, or a slanted label where no width is given.
export function tokenLabel(pen, ink, token, muted, x, y, wide) {
  const text = isolated(token), colour = css(muted ? ink.muted : ink.text);
  pen.font = `12px ${ink.mono}`;
  pen.textBaseline = "middle";
  pen.fillStyle = colour;
  if (!wide) {
    slanted(pen, x, y + 4, fitted(pen, text, SLANTED * 1.2), false);
    return;
  }
  const cut = fitted(pen, text, wide - 6), chip = Math.min(wide, pen.measureText(cut).width + 12);
  pen.fillStyle = css(ink.text, 0.07);
  pen.beginPath();
  pen.roundRect(x - chip / 2, y, chip, CHIP - 4, 5);
  pen.fill();
  pen.fillStyle = colour;
  pen.textAlign = "center";
  pen.fillText(cut, x, y + CHIP / 2 - 2);
}

export function slanted(pen, x, y, text, above) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-Math.PI / 3.2);
  pen.textAlign = above ? "left" : "right";
  pen.fillText(text, 0, 0);
  pen.restore();
}

"""The inside of a block in a real browser: its parts, its pictures, its doors."""

from __future__ import annotations

PIXELS = """(canvas, [x, y, rows, columns, width, height]) => {
  const pen = canvas.getContext("2d"), scale = canvas.width / parseFloat(canvas.style.width);
  return Array.from({length: rows}, (_, row) => Array.from({length: columns}, (_, column) => {
    const at = [x + (column + 0.5) * width / columns, y + (row + 0.5) * height / rows];
    return [...pen.getImageData(...at.map(v => Math.floor(v * scale)), 1, 1).data.slice(0, 3)];
  }));
}"""
"""The colours in the middle of every cell of a picture."""

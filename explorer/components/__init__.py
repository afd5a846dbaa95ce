"""The views that answer the pointer without the server: matrix, grid, lines, chips."""

from __future__ import annotations

from explorer.components.grid import GridPick, grid
from explorer.components.matrix import matrix

__all__ = ["GridPick", "grid", "matrix"]

"""Canvas views that answer the pointer without the server; those most pages draw by their names."""

from explorer.components.chips import chips
from explorer.components.lines import lines
from explorer.components.matrix import matrix
from explorer.components.picker import grid

__all__ = ["chips", "grid", "lines", "matrix"]

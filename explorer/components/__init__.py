"""The views that answer the pointer without the server; those most pages draw by their names.

Others are asked for where they are: board, cells, inspect, ranked, stage_list, stages, tree; and
offline, which is a file to take away.
"""

from __future__ import annotations

from explorer.components.chips import chips
from explorer.components.grid import grid
from explorer.components.lines import lines
from explorer.components.matrix import matrix

__all__ = ["chips", "grid", "lines", "matrix"]

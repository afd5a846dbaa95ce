"""The spine of a pass: all its stages on one line, where one stands, and how to move on.

Sections are folded but for the one in which one stands. A click, the buttons, Space and
the arrow keys move; only then is the server asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.components import events, wire
from explorer.components.mounting import View

HTML = """
<nav class="view spine" aria-label="Stages of the pass">
  <div class="moves">
    <button type="button" class="back">Back</button>
    <span class="where"></span>
    <button type="button" class="on">Next</button>
  </div>
  <div class="notes"></div>
  <div class="stage"><ol class="line"></ol></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</nav>
"""

_VIEW = View("spine", HTML)


@dataclass(frozen=True)
class Bone:
    """One section: its title, its stages, and how long the stream is behind it."""

    title: str
    stages: tuple[str, ...]
    branches: tuple[str, ...]
    on_line: tuple[bool, ...]
    length: float
    said: str


def spine(
    bones: Sequence[Bone],
    *,
    key: str,
    at: int,
    on_move: Callable[[int], None],
    height: int,
    note: str,
) -> None:
    """Draw the stages of all sections; `on_move(stage)` is called before the next run."""
    count = sum(len(bone.stages) for bone in bones)

    def hand_over() -> None:
        chosen = events.cell(events.event(key, "chosen"), 1, count)
        if chosen:
            on_move(chosen[1])

    _VIEW(
        key=key,
        data=encode(bones, note, name=key),
        height=height,
        choice=[0, at],
        on_chosen_change=hand_over,
    )


def encode(bones: Sequence[Bone], note: str, *, name: str) -> bytes:
    """All sections as one message."""
    lengths = [bone.length if math.isfinite(bone.length) else 0.0 for bone in bones]
    longest = max(lengths, default=0.0)
    header = {
        "name": name,
        "tells": True,
        "note": note,
        "bones": [
            {
                "title": bone.title,
                "stages": list(bone.stages),
                "branches": list(bone.branches),
                "onLine": list(bone.on_line),
                "share": round(length / longest, 4) if longest else 0.0,
                "said": bone.said,
            }
            for bone, length in zip(bones, lengths, strict=True)
        ],
    }
    return wire.pack(header)

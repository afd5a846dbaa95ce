"""Presenter mode, as far as the server has to do with it: what the second window says of a step.

All else is in the browser, so that it begins at once: `explorer/components/presenter`.
"""

from __future__ import annotations

PRESENT = "present"
"""In the address, which the browser writes."""


def told() -> list[str]:
    """Lesson, place in it, title of the step, its notes, title of the next; empty if none is open.

    The second window shows them.
    """
    return [""] * 5

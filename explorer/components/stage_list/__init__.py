"""The stages of a forward pass in a list: which one is chosen, and buttons to the next.

Only the section of the chosen stage is open. A click, the buttons, Space, the arrow keys and
play choose another stage; only then does the page run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.charts.figure_data import Figure, TableData, Value
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.components.player import MOVES

STAGE_LIST_HTML = f"""
<nav class="view stage_list" aria-label="Stages of the forward pass">
  <div class="moves">{MOVES}<span class="where"></span></div>
  <div class="notes"></div>
  <div class="stage"><ol class="line"></ol></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</nav>
"""

_VIEW = View("stage_list", STAGE_LIST_HTML)


@dataclass(frozen=True)
class StageSection:
    """One section: its title, its stages, and the norm of the residual stream behind it."""

    title: str
    stages: tuple[str, ...]
    branches: tuple[str, ...]
    on_line: tuple[bool, ...]
    norm: float
    label: str


def stage_list(
    sections: Sequence[StageSection],
    *,
    key: str,
    at: int,
    on_move: Callable[[int], None],
    title: str,
    note: str,
) -> None:
    """Draw the stages of all sections; `on_move(stage)` is called before the next run.

    `title` names the norms, `note` says whose they are.
    """
    count = sum(len(section.stages) for section in sections)

    def hand_over() -> None:
        chosen = events.cell(events.chosen(key), 1, count)
        if chosen:
            on_move(chosen[1])

    def figures() -> list[Figure]:
        table: dict[str, Sequence[Value]] = {
            "section": [section.title for section in sections],
            "norm of the residual stream": [section.norm for section in sections],
        }
        return [TableData(table, title)]

    norms = [wire.finite(section.norm) or 0.0 for section in sections]
    longest = max(norms, default=0.0)
    header = {
        "name": key,
        "tells": True,
        "note": note,
        "sections": [
            {
                **wire.fields(section, "title stages branches on_line label"),
                "share": round(norm / longest, 4) if longest else 0.0,
            }
            for section, norm in zip(sections, norms, strict=True)
        ],
    }
    _VIEW(
        figures=figures,
        title=title,
        key=key,
        data=wire.pack(header),
        choice=[0, at],
        on_chosen_change=hand_over,
    )

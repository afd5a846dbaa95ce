"""One head stage by stage: its equation, the tensors side by side, one cell pinned in all.

Pointing at a symbol shows its tensor and pointing at a tensor its symbol; a cell that is
pointed at or pinned shows its number in every stage. None of it asks the server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from explorer.charts.figure_data import Figure, FigureData
from explorer.components import events, wire
from explorer.components.events import Place
from explorer.components.mounting import View
from explorer.text.token_labels import Label, texts

STAGES_HTML = """
<div class="view stages">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="formula"><div class="equation" role="img"></div><div class="about"></div></div>
  <div class="stage panels"></div>
  <div class="foot"><span class="hint"></span></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""
MAIN = {"logits", "weights", "out"}
"""Of its tensors those that are exported first, and stand on a slide: around the softmax."""

Node = str | dict[str, Any]
"""A part of the equation: text, or the tensor it is `of`, its `parts` and its `kind`."""

_VIEW = View("stages", STAGES_HTML)


@dataclass(frozen=True, eq=False)
class Panel:
    """One tensor. `kind` is "pair" (queries × keys), or whose vectors it has, "query" or "key".

    `group` names the vectors that share their dimensions, `line` is 0 above and 1 below, `sentence`
    says what it is. What is `hidden` is not sent.
    """

    of: str
    symbol: str
    sentence: str
    values: Tensor
    kind: str = "pair"
    group: str = ""
    line: int = 0
    scale: str = "diverging"
    top: float | None = None
    labels: bool = False
    hidden: bool = False


def stages(
    panels: Sequence[Panel],
    rows: Sequence[Label],
    columns: Sequence[Label],
    equation: Sequence[Node],
    *,
    key: str,
    title: str,
    spoken: str,
    about: str,
    sentence: str,
    masked_sentence: str,
    pinned: Place | None,
    on_pin: Callable[[Place | None], None],
) -> None:
    """Draw the panels of the head that `title` names.

    `spoken` is the equation in words, `about` stands where none is meant. `sentence` and
    `masked_sentence` say a cell, with {row}, {column} and {value}. `pinned` is the cell pinned
    at first; pinning another or unpinning calls `on_pin` before the next run.
    """

    def figures() -> list[Figure]:
        visible = (panel for panel in panels if not panel.hidden)
        return [
            _figure(panel, title, texts(rows), texts(columns))
            for panel in sorted(visible, key=lambda panel: panel.of not in MAIN)
        ]

    words = {
        "title": title,
        "hint": "Point at a cell to read it in every step; click to pin it.",
        "spoken": spoken,
        "about": about,
        "tip": "Point at a symbol to see its matrix, or at a matrix to see its symbol; click to "
        "keep it.",
        "sentence": sentence,
        "masked": masked_sentence,
    }
    _VIEW(
        key=key,
        data=encode(panels, rows, columns, equation, words, name=key),
        choice=list(pinned or ()),
        figures=figures,
        title=title,
        on_chosen_change=events.on_pin(key, len(rows), len(columns), on_pin),
    )


def _figure(panel: Panel, title: str, rows: Sequence[str], columns: Sequence[str]) -> FigureData:
    names = {"pair": ("query", "key")}.get(panel.kind, (panel.kind, "dimension"))
    labels = rows if names[0] == "query" else columns
    dimensions = columns if panel.kind == "pair" else [*map(str, range(panel.values.shape[-1]))]
    return FigureData(
        panel.values,
        tuple(labels),
        tuple(dimensions),
        f"{title} · {panel.sentence.removesuffix('.')}",
        "value",
        *names,
        scale="diverging" if panel.scale == "diverging" else "sequential",
        top=panel.top,
    )


def encode(
    panels: Sequence[Panel],
    rows: Sequence[Label],
    columns: Sequence[Label],
    equation: Sequence[Node],
    words: dict[str, str],
    *,
    name: str,
) -> bytes:
    """All panels as one message, their numbers in single precision: what is said is exact."""
    header = {
        **words,
        "name": name,
        "tells": True,
        **wire.labelled(rows, columns),
        "equation": list(equation),
        "later": [panel.of for panel in panels if panel.hidden],
        "panels": [_described(panel) for panel in panels],
    }
    planes = {
        panel.of: b"" if panel.hidden else wire.singles(wire.as_array(panel.values))
        for panel in panels
    }
    return wire.pack(header, planes)


def _described(panel: Panel) -> dict[str, Any]:
    largest = wire.largest_of(panel.values)
    return {
        **wire.fields(panel, "of symbol sentence kind group line scale labels hidden"),
        "size": list(panel.values.shape),
        "shape": " × ".join(map(str, panel.values.shape)),
        "top": panel.top or largest or 1.0,
        "empty": not largest,
    }

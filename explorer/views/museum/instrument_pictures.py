"""The pictures of the instruments: a matrix with labels, and a sentence that says what it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import head_title
from explorer.catalog.attention_parts import site as site_of
from explorer.catalog.folders import own_name
from explorer.inference.answers import class_names
from explorer.views.museum.measured_run import MeasuredRun, head_map

MOST_PLACES = MOST_OUTPUTS = 12
MOST_WITH_PADDING = 128
"""A longer sentence is measured with padding, but not drawn."""


@dataclass(frozen=True, eq=False)
class InstrumentPicture:
    """Values (rows, columns) and whose they are; `shows` says it where nothing else does."""

    values: Tensor
    down: tuple[str, ...]
    across: tuple[str, ...]
    title: str
    axes: tuple[str, str] = ("query", "key")
    unit: str = "weight"
    shows: str = ""

    def is_like(self, other: "InstrumentPicture") -> bool:
        """Whether the two look the same."""
        names = self.down, self.across, other.down, other.across
        return names[:2] == names[2:] and torch.allclose(
            self.values, other.values, atol=1e-6, equal_nan=True
        )


def map_picture(run: MeasuredRun, weights: Tensor) -> "InstrumentPicture":
    """The map of the chosen head; its labels are the source's where a mistake attends to it."""
    part = run.head[0]
    rows, columns = run.forward.rows(part), run.forward.columns(part)
    if weights.shape != (len(rows), len(columns)):
        rows = columns = run.forward.source
    down, across = (tuple(token.label for token in each) for each in (rows, columns))
    title = head_title(run.opened.name, *run.head)
    return InstrumentPicture(weights, down, across, title, shows=title)


def masked_picture(run: MeasuredRun, weights: Tensor) -> "InstrumentPicture":
    """The map of the first head where every key is masked."""
    names = _names(run, run.ids[0])
    title = f"{head_title(run.opened.name, run.forward.parts[0].name, 0, 0)}, every key masked"
    return InstrumentPicture(weights, names, names, title, shows=title)


def output_picture(run: MeasuredRun, output: Tensor) -> "InstrumentPicture":
    """The largest outputs at the last position, and the same at the positions before it."""
    rows = output[None] if output.dim() == 1 else output[-MOST_PLACES:]
    largest = rows[-1].sort(descending=True, stable=True).indices[:MOST_OUTPUTS]
    head = run.model.config.head
    if head == "classifier":
        across = tuple(class_names(run.opened)[i] for i in largest.tolist())
    elif head == "none":
        across = tuple(map(str, largest.tolist()))
    else:
        across = _names(run, largest)
    down = ("text",) if output.dim() == 1 else _names(run, run.last_ids[0, -len(rows) :])
    shows = f"Last row: the {len(across)} largest at the last position. Above: the same earlier."
    if len(rows) == 1:
        shows = f"The {len(across)} largest."
    title = f"{own_name(run.opened.name)} · Output at the last positions"
    return InstrumentPicture(
        rows[:, largest], down, across, title, ("position", "output"), "output", shows
    )


def repeats_picture(run: MeasuredRun, generated: Sequence[int]) -> "InstrumentPicture":
    """Which of the generated tokens are the same."""
    ids = torch.tensor(generated)
    names = _names(run, ids)
    shows = "Filled where two of the generated tokens are the same."
    title = f"{own_name(run.opened.name)} · Equal tokens among those generated"
    return InstrumentPicture(
        (ids[:, None] == ids).float(), names, names, title, ("token", "token"), "same", shows
    )


def padded_picture(run: MeasuredRun, longer: Tensor) -> "InstrumentPicture | None":
    """The map of the chosen head with padding after the sentence; None where it is not drawn."""
    part, layer, head = run.head
    if run.ids.shape[1] > MOST_WITH_PADDING:
        return None
    if part == "decoder.self_attn" and run.target is not None:  # it does not read the source
        part, layer, head = run.forward.parts[0].name, 0, 0
    site = f"{site_of(part, layer)}.weights"
    weights = run.recorded({site: head_map(head)}, ids=longer).get(site)
    if weights is None:
        return None
    rows = tuple(token.label for token in run.forward.rows(part))
    across = _names(run, longer[0])
    if weights.shape[0] < len(rows) or weights.shape[1] != len(across):
        return None
    title = f"{head_title(run.opened.name, part, layer, head)}, padding after the sentence"
    return InstrumentPicture(weights[: len(rows)], rows, across, title, shows=title)


def _names(run: MeasuredRun, ids: Tensor) -> tuple[str, ...]:
    return tuple(run.opened.tokenizer.token(i).label for i in ids.tolist())

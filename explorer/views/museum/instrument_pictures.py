"""What an instrument draws: numbers with a name for every row and column, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site as named_site
from explorer.inference.answers import class_names
from explorer.views.museum.case import Case
from explorer.views.museum.museum_taps import one_head

MOST_PLACES = MOST_OUTPUTS = 12
MOST_WITH_FILLER = 128
"""A sentence longer than this is measured with filler behind it, but not drawn."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Numbers (rows, columns); `shows` says what they are where nothing else does."""

    values: Tensor
    down: tuple[str, ...]
    across: tuple[str, ...]
    axes: tuple[str, str] = ("query", "key")
    unit: str = "weight"
    shows: str = ""

    def is_like(self, other: Picture) -> bool:
        """Whether no eye could tell the two apart."""
        names = self.down, self.across, other.down, other.across
        return names[:2] == names[2:] and torch.allclose(
            self.values, other.values, atol=1e-6, equal_nan=True
        )


def named_look(case: Case) -> str:
    """The attention that is drawn, by the names of the sidebar."""
    part, layer, head = case.look
    return f"layer {layer}, head {head} · {case.forward.part(part).title}"


def looks(case: Case, weights: Tensor) -> Picture:
    """The map of the chosen head; a decoder that looks at the source instead is labelled so."""
    part = case.look[0]
    rows, columns = case.forward.rows(part), case.forward.columns(part)
    if weights.shape != (len(rows), len(columns)):
        rows = columns = case.forward.source
    down, across = (tuple(token.label for token in each) for each in (rows, columns))
    return Picture(weights, down, across)


def of_nothing(case: Case, weights: Tensor) -> Picture:
    """What the first head makes of a sentence of which nothing may be seen."""
    names = _names(case, case.ids[0])
    part = case.forward.parts[0].title
    shows = f"Layer 0, head 0 · {part}, where nothing of the sentence may be seen."
    return Picture(weights, names, names, shows=shows)


def last_outputs(case: Case, given: Tensor) -> Picture:
    """The largest of the outputs (places, numbers) at the last place, and those before them."""
    rows = given[None] if given.dim() == 1 else given[-MOST_PLACES:]
    largest = rows[-1].sort(descending=True, stable=True).indices[:MOST_OUTPUTS]
    head = case.model.config.head
    if head == "classifier":
        across = tuple(class_names(case.opened)[i] for i in largest.tolist())
    elif head == "none":
        across = tuple(map(str, largest.tolist()))
    else:
        across = _names(case, largest)
    down = ("text",) if given.dim() == 1 else _names(case, case.written[0, -len(rows) :])
    shows = f"Last row: the {len(across)} largest at the last place. Above: the same ones before."
    if len(rows) == 1:
        shows = f"The {len(across)} largest."
    return Picture(rows[:, largest], down, across, ("place", "output"), "output", shows)


def repeats(case: Case, written: Sequence[int]) -> Picture:
    """Which of the tokens that were written are the same."""
    ids = torch.tensor(written)
    names = _names(case, ids)
    shows = "Filled where two of the tokens that it writes are the same."
    return Picture((ids[:, None] == ids).float(), names, names, ("token", "token"), "same", shows)


def with_filler(case: Case, longer: Tensor) -> Picture | None:
    """What the chosen head looks at with filler behind the sentence; None where it is not shown."""
    part, layer, head = case.look
    if case.ids.shape[1] > MOST_WITH_FILLER:
        return None
    if part == "decoder.self_attn" and case.target is not None:  # it never meets the source
        part, layer, head = case.forward.parts[0].name, 0, 0
    site = f"{named_site(part, layer)}.weights"
    weights = case.seen({site: one_head(head)}, ids=longer).get(site)
    if weights is None:
        return None
    rows = tuple(token.label for token in case.forward.rows(part))
    across = _names(case, longer[0])
    if weights.shape[0] < len(rows) or weights.shape[1] != len(across):
        return None
    title = case.forward.part(part).title
    shows = f"Layer {layer}, head {head} · {title}, with filler behind the sentence."
    return Picture(weights[: len(rows)], rows, across, shows=shows)


def _names(case: Case, ids: Tensor) -> tuple[str, ...]:
    return tuple(case.opened.tokenizer.token(i).label for i in ids.tolist())

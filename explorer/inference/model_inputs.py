"""Tokens into the model: their IDs, the positions with logits, and one recorded pass."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import masks_in
from explorer.text import Token
from models.trace import CHEAP_SITES, Trace, trace


def ids_of(rows: Sequence[Sequence[Token]]) -> Tensor:
    """The token IDs, one row for each text."""
    return torch.tensor([[token.id for token in row] for row in rows])


def segments_of(opened: OpenModel, rows: Sequence[Sequence[Token]]) -> Tensor | None:
    """The text of the pair to which each token belongs; None for a model without segments.

    A published tokenizer may count more segments than its model has.
    """
    most = opened.config.n_segments - 1
    if most < 0:
        return None
    return torch.tensor([[min(token.segment, most) for token in row] for row in rows])


def positions_shown(opened: OpenModel, encoded: Sequence[Sequence[Token]]) -> slice:
    """The positions whose logits a page shows; only these are computed."""
    if len(encoded) > 1 or not opened.config.head.endswith("language-model"):
        return slice(None)
    if opened.config.kind == "decoder":
        return slice(-1, None)
    masks = masks_in(opened, encoded[0])
    return slice(masks[0], masks[0] + 1) if masks else slice(None)


def record(
    opened: OpenModel,
    *stacks: Sequence[Sequence[Token]],
    sites: Sequence[str] = CHEAP_SITES,
    **how: Any,
) -> Trace:
    """One recorded pass over the rows of the encoder, of the decoder, or of both.

    The pages derive all their values from it. TooLargeError where there is no room for it.
    """
    if len(stacks) == 1:
        how["segments"] = segments_of(opened, stacks[0])
    return trace(opened.model, *map(ids_of, stacks), sites=sites, **how)

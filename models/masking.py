"""Masks: boolean tensors in which True means that this query may attend to this key.

Masks have the shape (batch, heads, queries, keys), any of them 1, and combine with `&`.
Source: Attention Is All You Need, section 3.2.3.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from models.shapes import AnyMask, Mask, check_ids


def causal_mask(
    queries: int, keys: int | None = None, device: torch.device | None = None
) -> Bool[Tensor, "1 1 q k"]:
    """Each query attends to its own key and those before it.

    With more keys than queries, the queries are the last of them, as they are
    when earlier keys come from a cache.
    """
    keys = queries if keys is None else keys
    everyone = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return everyone.tril(keys - queries)[None, None]


def window_mask(
    window: int, queries: int, keys: int, device: torch.device | None = None
) -> Bool[Tensor, "1 1 q k"]:
    """Each query attends to the last `window` keys up to its own, and to all after it.

    Source: Longformer (Beltagy et al. 2020), section 3.1.
    """
    everyone = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return everyone.triu(keys - queries - window + 1)[None, None]


def padding_mask(keep: Bool[Tensor, "b k"]) -> Bool[Tensor, "b 1 1 k"]:
    """No query attends to padding. `keep` is True on real tokens."""
    return keep[:, None, None, :]


def boolean_mask(mask: AnyMask | None) -> Mask | None:
    """The mask in booleans. ValueError for floats, which could be meant to be added to scores."""
    if mask is not None and mask.is_floating_point():
        raise ValueError("A mask is of booleans, or of integers that are 0 where it is False.")
    return None if mask is None else mask.bool()


def both(first: Mask | None, second: Mask | None) -> Bool[Tensor, "..."] | None:
    """Both masks combined. None is the mask that allows everything."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def keep_of(
    ids: Int[Tensor, "b t"], pad_id: int | None, *, pad_begins: bool = False
) -> Bool[Tensor, "b t"] | None:
    """True on real tokens, or None, which is cheaper, when nothing is padding.

    `pad_begins`: the first token is real whatever it is (T5 generates after a padding token).
    """
    check_ids(ids)
    if pad_id is None:
        return None
    keep = ids != pad_id
    if pad_begins:
        keep[:, 0] = True
    return None if keep.all() else keep

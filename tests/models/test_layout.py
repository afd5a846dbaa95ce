"""A tensor of a published file that is split into ours and joined again is the same tensor."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.families.layout import Columns, HeadByHead, MinusOne, Rows, Same

Q, K, V = torch.empty(12, 8), torch.empty(6, 8), torch.empty(6, 8)
BIASES = [one[:, 0] for one in (Q, K, V)]
NAMES = ("q", "k", "v")
CASES: list[tuple[Same, tuple[int, ...], list[Tensor]]] = [
    (Same(("a",)), (12, 8), [Q]),
    (Rows(NAMES), (24, 8), [Q, K, V]),
    (Rows(NAMES), (24,), BIASES),
    (Columns(NAMES), (8, 24), [Q, K, V]),
    (Columns(NAMES), (24,), BIASES),
    (HeadByHead(NAMES, 3), (36, 8), [Q, Q, Q]),
    (HeadByHead(NAMES, 3), (36,), [BIASES[0]] * 3),
    (MinusOne(("a",)), (12,), [BIASES[0]]),
]


def test_split_and_joined() -> None:
    for layout, shape, ours in CASES:
        theirs = torch.arange(torch.Size(shape).numel()).reshape(shape).float()
        parts = layout.split(theirs, ours)
        assert [part.shape for part in parts] == [one.shape for one in ours]
        assert torch.equal(layout.join(parts), theirs)
        meta = layout.split(theirs.to("meta"), ours)
        assert [part.shape for part in meta] == [one.shape for one in ours]
    for layout in (Rows(NAMES), HeadByHead(NAMES, 3)):
        with pytest.raises(RuntimeError):
            layout.split(torch.empty(35, 8), [Q, K, V])


def test_every_head_has_its_three_together() -> None:
    """Rows 0 and 1 are queries of the first head, 2 and 3 its keys, 4 and 5 its values."""
    q, k, v = HeadByHead(NAMES, 2).split(torch.arange(12), [torch.empty(4)] * 3)
    assert (q.tolist(), k.tolist(), v.tolist()) == ([0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11])

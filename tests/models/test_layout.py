"""A tensor of a published file that is split into ours and joined again is the same tensor."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.families.layout import Columns, HeadByHead, MinusOne, Rows, Same

Q, K, V = torch.empty(12, 8), torch.empty(6, 8), torch.empty(6, 8)
BIASES = [one[:, 0] for one in (Q, K, V)]
CASES: list[tuple[str, Same, tuple[int, ...], list[Tensor]]] = [
    ("the same", Same(("a",)), (12, 8), [Q]),
    ("rows", Rows(("q", "k", "v")), (24, 8), [Q, K, V]),
    ("rows of biases", Rows(("q", "k", "v")), (24,), BIASES),
    ("columns", Columns(("q", "k", "v")), (8, 24), [Q, K, V]),
    ("columns of biases", Columns(("q", "k", "v")), (24,), BIASES),
    ("head by head", HeadByHead(("q", "k", "v"), 3), (36, 8), [Q, Q, Q]),
    ("head by head, biases", HeadByHead(("q", "k", "v"), 3), (36,), [BIASES[0]] * 3),
    ("minus one", MinusOne(("a",)), (12,), [BIASES[0]]),
]


def test_split_and_joined(subtests: pytest.Subtests) -> None:
    for name, layout, shape, ours in CASES:
        with subtests.test(name=name):
            theirs = torch.arange(torch.Size(shape).numel()).reshape(shape).float()
            parts = layout.split(theirs, ours)
            assert [part.shape for part in parts] == [one.shape for one in ours]
            assert torch.equal(layout.join(parts), theirs)
            meta = layout.split(theirs.to("meta"), ours)
            assert [part.shape for part in meta] == [one.shape for one in ours]


def test_every_head_has_its_three_together() -> None:
    """Rows 0 and 1 are queries of the first head, 2 and 3 its keys, 4 and 5 its values."""
    theirs = torch.arange(12)
    q, k, v = HeadByHead(("q", "k", "v"), 2).split(theirs, [torch.empty(4)] * 3)
    assert q.tolist() == [0, 1, 6, 7]
    assert k.tolist() == [2, 3, 8, 9]
    assert v.tolist() == [4, 5, 10, 11]


def test_what_does_not_fit_is_no_layout(subtests: pytest.Subtests) -> None:
    for layout in [Rows(("q", "k", "v")), HeadByHead(("q", "k", "v"), 3)]:
        with subtests.test(layout=layout), pytest.raises(RuntimeError):
            layout.split(torch.empty(35, 8), [Q, K, V])

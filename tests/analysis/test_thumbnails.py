"""Small pictures of every head: what they keep, and that they never hold all weights."""

import dataclasses
import gc
import weakref
from itertools import product
from pathlib import Path

import pytest
import torch

from explorer.analysis import thumbnails
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from tests.components.samples import heads


def test_pooling_keeps_the_largest() -> None:
    for shape in [(1, 1, 5, 9), (2, 3, 33, 64), (1, 2, 128, 128), (1, 1, 1, 1)]:
        weights = heads(*shape)
        small = thumbnails.thumbnails_of_weights(weights)
        cells, n = small.cells, small.pooled
        assert max(cells.shape[2:]) <= thumbnails.SIDE
        for q, k in product(range(cells.shape[2]), range(cells.shape[3])):
            block = weights[:, :, q * n : q * n + n, k * n : k * n + n]
            assert torch.equal(cells[:, :, q, k], block.amax((2, 3))), shape


def test_head_by_head_is_all_at_once_and_kept_as_long_as_the_reading(
    small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_model.opened_from(small_models / "translation", "translation")
    read = dataclasses.replace(forward_pass.run_text(opened, opened.example))  # kept by nobody else
    monkeypatch.setattr(forward_pass, "WEIGHTS_HELD", 1)
    for part in read.parts:
        whole = read.all_weights(part.name)
        found = thumbnails.thumbnails_of(read, part.name)
        assert torch.equal(found.cells, thumbnails.thumbnails_of_weights(whole).cells)
        singly = [list(read.some_heads(part.name, n)) for n in range(part.layers)]
        assert all(len(layer) == part.heads for layer in singly)
        torch.testing.assert_close(torch.stack([torch.cat(layer) for layer in singly]), whole)
        assert thumbnails.thumbnails_of(read, part.name) is found
    made = weakref.ref(found)
    del found
    gc.collect()
    assert made() is not None
    del read
    gc.collect()
    assert made() is None

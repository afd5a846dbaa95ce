"""Small pictures of every head: what they keep, and that they never hold all weights."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from pathlib import Path

import pytest
import torch

from explorer import library, reading
from explorer.analysis import thumbnails
from explorer.reading import Reading
from tests.components.samples import heads
from tests.shelf import shelf


@pytest.fixture
def read_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(shelf(tmp_path)))
    opened = library.open_model(library.entries()[0].name)
    return reading.read(opened, opened.example)


def test_pooling_keeps_the_largest(subtests: pytest.Subtests) -> None:
    for shape in [(1, 1, 5, 9), (2, 3, 33, 64), (1, 2, 128, 128), (1, 1, 1, 1)]:
        with subtests.test(shape=shape):
            weights = heads(*shape)
            small = thumbnails.of_weights(weights)
            cells, n = small.cells, small.pooled
            assert max(cells.shape[2:]) <= thumbnails.SIDE
            for q in range(cells.shape[2]):
                for k in range(cells.shape[3]):
                    block = weights[:, :, q * n : q * n + n, k * n : k * n + n]
                    assert torch.equal(cells[:, :, q, k], block.amax((2, 3)))


def test_head_by_head_is_all_at_once(read_text: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in read_text.parts:
        whole = thumbnails.of_weights(read_text.all_weights(part.name))
        together = thumbnails.of_reading(read_text, part.name)
        assert torch.equal(together.cells, whole.cells)
        with monkeypatch.context() as patch:
            patch.setattr(reading, "WEIGHTS_HELD", 1)
            singly = [list(read_text.some_heads(part.name, n)) for n in range(part.layers)]
        assert all(len(layer) == part.heads for layer in singly)
        apart = torch.stack([torch.cat(layer) for layer in singly])
        torch.testing.assert_close(apart, read_text.all_weights(part.name))


def test_they_are_kept_as_long_as_the_reading(read_text: Reading) -> None:
    part = read_text.parts[-1].name
    again = dataclasses.replace(read_text)  # another one, which nobody else keeps
    first = thumbnails.of_reading(again, part)
    assert thumbnails.of_reading(again, part) is first
    made = weakref.ref(first)
    del first
    gc.collect()
    assert made() is not None
    del again
    gc.collect()
    assert made() is None

"""The deciles of a head are those of all its visible weights, counted by hand."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.weight_distribution import (
    DECILES,
    readable_lines,
    usual_lines,
    weight_deciles,
)
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError, run_batch_uncached
from explorer.views.attention.weight_distribution_view import why_no_deciles
from tests.analysis.conftest import opened_of

LINES = ("the black cat sleeps le chat", "le chat noir", "the cat sleeps")


@pytest.mark.parametrize("kind", ["grouped", "relative", "alibi, windows"])
def test_deciles_are_those_of_all_visible_weights(tmp_path: Path, kind: str) -> None:
    opened = opened_of(tmp_path, kind)
    passes = [run_batch_uncached(opened, (line,))[0] for line in LINES]
    for part in passes[0].parts:
        found = weight_deciles(opened, part.name, LINES)
        for layer, head in ((0, 0), (part.layers - 1, part.heads - 1)):
            cells = {}
            for line, forward in enumerate(passes):
                weights = forward.weights(part.name, layer, head)
                for q, k in forward.mask(part.name, layer).expand_as(weights).nonzero().tolist():
                    cells[line, q, k] = float(weights[q, k])
            ordered, count = sorted(cells.values()), len(cells)
            every = sum(len(f.rows(part.name)) * len(f.columns(part.name)) for f in passes)
            assert found.cells[layer].tolist() == [count, every - count]
            for decile in range(DECILES if count >= DECILES else 0):
                own = ordered[count * decile // DECILES : count * (decile + 1) // DECILES]
                where, share = (layer, head, decile), sum(own) / sum(ordered)
                numbers = [float(of[where]) for of in (found.low, found.high, found.share)]
                assert numbers == pytest.approx([own[0], own[-1], share], abs=1e-6)
                for place, value in zip(found.examples[where], found.weights[where], strict=True):
                    assert cells[tuple(place.tolist())] == pytest.approx(float(value), abs=1e-6)
                    assert own[0] - 1e-6 <= float(value) <= own[-1] + 1e-6


def test_lines_that_do_not_fit_are_left_out_and_own_ones_refused(letters: OpenModel) -> None:
    lines = ["cat", "x" * 999, "the cat", "that"]
    counts = readable_lines(letters, lines, 1_000, own=False)
    assert list(counts) == ["cat", "the cat", "that"]
    assert counts["cat"] == len(letters.tokenizer.encode("cat"))
    assert list(readable_lines(letters, lines, sum(counts.values()) - 1, own=False)) == lines[::2]
    with pytest.raises(ForwardPassError, match="1,000 tokens long"):
        readable_lines(letters, lines, 10_000, own=True)
    with pytest.raises(ForwardPassError, match="too long to sort"):
        readable_lines(letters, lines, 1, own=True)
    assert readable_lines(letters, usual_lines(letters)[0], 10_000, own=False)


def test_a_head_without_deciles_says_why(letters: OpenModel) -> None:
    found = weight_deciles(letters, "decoder.self_attn", ("cat", "that cat"))
    assert why_no_deciles(found, 0, 0) == ""
    found.finite[0, 0] = False
    assert "not finite" in why_no_deciles(found, 0, 0)
    found.cells[0] = torch.tensor([0, 12])
    assert "fully masked" in why_no_deciles(found, 0, 0)

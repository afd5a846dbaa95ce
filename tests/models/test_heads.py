"""What is read off the last stream."""

from __future__ import annotations

import pytest
import torch

from models.heads import ClassifierHead, first_kept, mean_of_kept
from models.transformer import Transformer
from tests.grids import grid
from tests.models.building import SMALL, ids_of, keep_of_lengths, shake, shaken

X = torch.randn(3, 5, 12, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("side", ["left", "right"])
def test_pooling_sees_real_tokens_only(side: str) -> None:
    lengths = [5, 2, 1]
    keep = keep_of_lengths(lengths, 5, side)
    first, mean = first_kept(X, keep), mean_of_kept(X, keep)
    for row, length in enumerate(lengths):
        real = X[row, :length] if side == "right" else X[row, 5 - length :]
        torch.testing.assert_close(first[row], real[0])
        torch.testing.assert_close(mean[row], real.mean(0))


def test_pooling_without_padding() -> None:
    everything = torch.ones(3, 5, dtype=torch.bool)
    assert torch.equal(first_kept(X, None), first_kept(X, everything))
    torch.testing.assert_close(mean_of_kept(X, None), mean_of_kept(X, everything))


def test_a_text_of_padding_has_a_mean_of_zeros() -> None:
    nothing = torch.zeros(3, 5, dtype=torch.bool)
    assert (mean_of_kept(X, nothing) == 0).all()
    assert first_kept(X, nothing).isfinite().all()


@grid("width, pooling", [None, 8], ["first", "mean"])
def test_classifier(pooling: str, width: int | None) -> None:
    config = SMALL.replace(
        kind="encoder", head="classifier", pooling=pooling, d_classifier=width, n_classes=4
    )
    head = shake(ClassifierHead(config)).eval()
    pooled = X.mean(1) if pooling == "mean" else X[:, 0]
    if head.hidden is not None:
        pooled = (pooled @ head.hidden.weight.T + head.hidden.bias).relu()
    torch.testing.assert_close(head(X), pooled @ head.out.weight.T + head.out.bias)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_padding_moves_no_class(kind: str) -> None:
    config = SMALL.replace(kind=kind, head="classifier", pooling="mean")
    model, ids = shaken(config), ids_of(2, 5)
    padded = torch.cat((ids, torch.zeros(2, 4, dtype=torch.long)), 1)
    torch.testing.assert_close(model(ids), model(padded))


def test_a_tied_head_reads_the_embedding() -> None:
    tied = shaken(SMALL.replace(tie_embeddings=True))
    untied = Transformer(SMALL)
    assert untied.n_parameters - tied.n_parameters == SMALL.vocab_size * SMALL.d_model
    ids = ids_of(2, 5)
    before = tied(ids)
    assert tied.decoder is not None
    with torch.no_grad():
        tied.decoder.embedding.weight[1] *= 2  # token 1 is not among the ids
    after = tied(ids)
    assert not torch.allclose(before[..., 1], after[..., 1])
    torch.testing.assert_close(before[..., 2:], after[..., 2:])


def test_no_head_gives_the_stream() -> None:
    assert shaken(SMALL.replace(head="none"))(ids_of(2, 5)).shape == (2, 5, 12)

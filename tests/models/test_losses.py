"""Losses are torch's, and are their formulas."""

from __future__ import annotations

import torch
from torch import nn

from models.losses import IGNORE, cross_entropy, label_smoothing
from tests.grids import grid

GENERATOR = torch.Generator().manual_seed(1)
LOGITS = torch.randn(3, 5, 11, generator=GENERATOR)
LABELS = torch.randint(11, (3, 5), generator=GENERATOR)
PADDED = LABELS.masked_fill(torch.rand(3, 5, generator=GENERATOR) < 0.4, IGNORE)


@grid("labels, alpha", [LABELS, PADDED], [0.0, 0.1, 0.9])
def test_losses_are_torchs(alpha: float, labels: torch.Tensor) -> None:
    theirs = nn.CrossEntropyLoss(label_smoothing=alpha, ignore_index=IGNORE)
    expected = theirs(LOGITS.movedim(-1, 1), labels)
    torch.testing.assert_close(label_smoothing(LOGITS, labels, alpha), expected)
    if alpha == 0:
        torch.testing.assert_close(cross_entropy(LOGITS, labels), expected)


def test_label_smoothing_is_its_formula() -> None:
    smooth = 0.9 * torch.eye(11)[LABELS] + 0.1 / 11
    expected = -(smooth * LOGITS.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(label_smoothing(LOGITS, LABELS, 0.1), expected)


def test_ignored_labels_get_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    cross_entropy(logits, PADDED).backward()
    assert logits.grad is not None
    assert (logits.grad[PADDED == IGNORE] == 0).all()
    assert (logits.grad[PADDED != IGNORE] != 0).all()


def test_one_label_per_text() -> None:
    torch.testing.assert_close(
        cross_entropy(LOGITS[:, 0], LABELS[:, 0]),
        -LOGITS[:, 0].log_softmax(-1)[torch.arange(3), LABELS[:, 0]].mean(),
    )

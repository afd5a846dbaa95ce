"""Whether a training still learns, or its weights are lost.

What is judged is the loss beside that of a guess, ln V for a vocabulary of V tokens or V classes:
a model that knows nothing is at most a few times as bad.
"""

import math

import torch
from torch import nn

from explorer.text.number_format import three
from models import Transformer, TransformerConfig
from models.training import Batch, Report, batch_loss
from models.transformer import evaluating

POOR, LOST = 20, 1_000
"""Times the loss of a guess: weights so bad are not kept, and those are never any good again."""
STEPS_OF_PATIENCE = 50
"""Updates in a row after which a poor model counts as lost, too."""
LOOKED_AT = 8
"""The share of a batch that is looked at before weights are kept, as one part of so many."""


class Diverged(ArithmeticError):
    """The training has lost its model; the message says where."""


class Health:
    """Follows the losses of one training."""

    def __init__(self, config: TransformerConfig) -> None:
        is_classifier = config.head == "classifier"
        self.guess = math.log(max(2, config.n_classes if is_classifier else config.vocab_size))
        self._poor_for = 0

    def after(self, report: Report) -> None:
        """Diverged where this update began with a model that is lost."""
        is_poor = not report.loss <= POOR * self.guess
        self._poor_for = self._poor_for + 1 if is_poor else 0
        is_finite = math.isfinite(report.loss) and math.isfinite(report.grad_norm)
        if is_finite and report.loss <= LOST * self.guess and self._poor_for < STEPS_OF_PATIENCE:
            return
        found = f"the loss is {three(report.loss)}" if is_finite else "the loss is not finite"
        if math.isfinite(report.loss) and not is_finite:
            found = "the gradients are not finite"
        raise Diverged(
            f"The training diverged: {found} at step {report.step:,}, while guessing "
            f"uniformly would give {three(self.guess)}"
        )

    def at_the_end(self, model: Transformer, batch: Batch) -> None:
        """Diverged where the model that is done is none that is worth keeping."""
        if not self.is_good(model, batch):
            raise Diverged("The training diverged: the last update ruined the weights")

    def is_good(self, model: Transformer, batch: Batch) -> bool:
        """Whether weights are worth keeping: finite, and not poor on a part of this batch."""
        if not is_finite(model):
            return False
        part = batch.parts(LOOKED_AT)[0].to(next(model.parameters()).device)
        with evaluating(model):
            loss = batch_loss(model, part).item()
        return loss <= POOR * self.guess


def is_finite(model: nn.Module) -> bool:
    """Whether every weight is a number. Cost: one read of the weights."""
    sums = torch.stack([parameter.detach().sum() for parameter in model.parameters()])
    return bool(sums.isfinite().all())

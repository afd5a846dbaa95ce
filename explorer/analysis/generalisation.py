"""The generalisation gap: the loss on held-out examples minus that on training examples."""

from dataclasses import dataclass

from models.model import Transformer
from models.training import Batch, batch_loss
from models.transformer import evaluating

MOST_EXAMPLES = 256


@dataclass(frozen=True)
class Generalisation:
    """Two losses of the same weights, in nats per label, without dropout or label smoothing."""

    training: float
    held_out: float

    @property
    def gap(self) -> float:
        return self.held_out - self.training


def generalisation(model: Transformer, training: Batch, held_out: Batch) -> Generalisation:
    """The losses on the first examples of both batches. Cost: two forward passes."""
    with evaluating(model):
        first = [batch.rows(slice(MOST_EXAMPLES)) for batch in (training, held_out)]
        return Generalisation(*(batch_loss(model, batch).item() for batch in first))

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
        losses = [batch_loss(model, first_of(batch)).item() for batch in (training, held_out)]
    return Generalisation(*losses)


def first_of(batch: Batch, most: int = MOST_EXAMPLES) -> Batch:
    """The first examples of a batch."""
    return Batch(tuple(ids[:most] for ids in batch.inputs), batch.labels[:most])

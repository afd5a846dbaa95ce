"""The generalisation gap is that of the losses without dropout."""

import pytest
import torch

from explorer.analysis.generalisation import MOST_EXAMPLES, generalisation
from explorer.tasks import TASKS
from models import Transformer
from models.losses import cross_entropy


def test_both_losses_are_those_of_the_weights_as_they_are() -> None:
    task = TASKS["negation"]
    model = Transformer(task.model.replace(dropout=0.5)).train()
    training = task.batch(3, task.training)
    held_out = task.batch(4, task.training.replace(batch_size=MOST_EXAMPLES + 9))
    found = generalisation(model, training, held_out)
    assert model.training, "it goes on as it was"
    model.eval()
    with torch.no_grad():
        first = cross_entropy(model(*training.inputs), training.labels)
        rest = cross_entropy(
            model(*(ids[:MOST_EXAMPLES] for ids in held_out.inputs)),
            held_out.labels[:MOST_EXAMPLES],
        )
    assert found.training == pytest.approx(float(first))
    assert found.held_out == pytest.approx(float(rest))
    assert found.gap == found.held_out - found.training

"""Two texts of one length, and the number of the output that tells them apart."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from explorer.analysis.output_change import has_words
from models import Transformer, TransformerConfig


@dataclass(frozen=True, eq=False)
class Contrast:
    """The IDs (1, t) of a clean and a corrupted text, and what is measured of an output.

    `outcome` makes one number a row, (b,), of the logits (b, options) at `place`; of a
    classifier there is no place.
    """

    model: Transformer
    clean: Tensor
    corrupted: Tensor
    place: int
    outcome: Callable[[Tensor], Tensor]

    @property
    def config(self) -> TransformerConfig:
        return self.model.config

    @property
    def read_at(self) -> slice:
        """The only position whose logits are needed."""
        return slice(self.place, self.place + 1) if has_words(self.config) else slice(None)

    def measured(self, output: Tensor) -> Tensor:
        """The metric of each row of a model's output that was read at `read_at`, (b,)."""
        return self.outcome(output[:, 0] if output.dim() == 3 else output)

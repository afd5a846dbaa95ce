"""Many ways to go on from one prompt: it is read once, and so is every token behind it."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.cache import KeyValueCache
from models.generation import allowed, beginning
from models.masking import keep_of
from models.transformer import Transformer, evaluating


class GoingOn:
    """What a model expects behind a prompt, or in answer to a source, and behind what is written.

    It begins as one row. A step costs the pass of the tokens that are read, and memory
    grows with rows × tokens × layers.
    """

    def __init__(self, model: Transformer, prompt: Int[Tensor, "1 t"]) -> None:
        if model.config.head != "language-model" or model.decoder is None:
            raise ValueError("Only a decoder with a language-model head can write.")
        self._model = model
        self._keep = keep_of(prompt, model.config.pad_id)
        self._memory = self._memory_keep = None
        if model.config.kind == "encoder-decoder":
            self._keep, self._memory_keep = None, self._keep
            with evaluating(model):
                self._memory = model.encode(prompt, self._memory_keep)
        self._cache = KeyValueCache.empty(model.config.n_layers)
        start = beginning(model, prompt)
        self._begun = start.shape[1]
        logits = self._read(start, slice(-1, None))[:, -1]
        self.first: Float[Tensor, "1 v"] = allowed(logits, model.config, first=self._begun == 1)
        """The logits of the first token, −∞ for what may not be written."""

    def take(self, rows: list[int]) -> None:
        """Go on from these rows, some of them several times, others no more."""
        taken = torch.tensor(rows)
        self._cache.take(taken)
        self._keep = None if self._keep is None else self._keep[taken]

    def back_to(self, written: int) -> None:
        """Go on behind the first tokens that were written, so many of them."""
        self._cache.back_to(self._begun + written)
        self._keep = None if self._keep is None else self._keep[:, : self._begun + written]

    def read(self, ids: Int[Tensor, "rows t"]) -> Float[Tensor, "rows t v"]:
        """The next tokens of every row; the logits of what may follow each of them."""
        if self._keep is not None:
            self._keep = torch.cat((self._keep, torch.ones_like(ids, dtype=torch.bool)), 1)
        return allowed(self._read(ids, slice(None)), self._model.config, first=False)

    def _read(self, ids: Tensor, read_at: slice) -> Tensor:
        memory, keep = (
            None if whole is None else whole.expand(len(ids), *whole.shape[1:])
            for whole in (self._memory, self._memory_keep)
        )
        with evaluating(self._model):
            return self._model.decode(ids, memory, keep, self._keep, self._cache, read_at)

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

    It begins as one row; `take` makes rows of those that there are, `read` gives each of
    them its next token. A step costs one token's pass for each row, and memory grows with
    rows × tokens × layers.
    """

    def __init__(self, model: Transformer, prompt: Int[Tensor, "1 t"]) -> None:
        if model.config.head != "language-model" or model.decoder is None:
            raise ValueError("Only a decoder with a language-model head can write.")
        self._model = model
        self._memory = self._memory_keep = None
        keep = keep_of(prompt, model.config.pad_id)
        self._keep = keep
        if model.config.kind == "encoder-decoder":
            self._keep, self._memory_keep = None, keep
            with evaluating(model):
                self._memory = model.encode(prompt, keep)
        self._cache = KeyValueCache.empty(model.config.n_layers)
        start = beginning(model, prompt)
        self.logits = self._read(start, first=start.shape[1] == 1)
        """Of the next token of every row, −∞ for what may not be written (rows, vocabulary)."""

    def take(self, rows: list[int]) -> None:
        """Go on from these rows, some of them several times, others no more."""
        taken = torch.tensor(rows)
        self._cache = self._cache.taken(taken)
        self.logits = self.logits[taken]
        if self._keep is not None:
            self._keep = self._keep[taken]

    def read(self, tokens: list[int]) -> Float[Tensor, "rows v"]:
        """The next token of every row; what may follow it."""
        ids = torch.tensor(tokens)[:, None]
        if self._keep is not None:
            self._keep = torch.cat((self._keep, torch.ones_like(ids, dtype=torch.bool)), 1)
        self.logits = self._read(ids, first=False)
        return self.logits

    def _read(self, ids: Tensor, first: bool) -> Tensor:
        last = slice(-1, None)
        memory, keep = (
            None if whole is None else whole.expand(len(ids), *whole.shape[1:])
            for whole in (self._memory, self._memory_keep)
        )
        with evaluating(self._model):
            logits = self._model.decode(ids, memory, keep, self._keep, self._cache, last)[:, -1]
        return allowed(logits, self._model.config, first=first)

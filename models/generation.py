"""Generation: token after token, each sampled from the probabilities of the next."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.cache import KeyValueCache
from models.config import TransformerConfig
from models.masking import keep_of
from models.sampling import Sampling, ban_tokens, choose_from, sample
from models.tap import NO_TAP, Tap
from models.transformer import TransformerBase, evaluating

Model = TransformerBase[TransformerConfig]
UNNAMED = 0  # the start or padding token where the config names none


@dataclass(frozen=True, eq=False)
class GenerationStep:
    """One token for every sequence of the batch."""

    ids: Int[Tensor, " b"]  # padding (or the end token) where a sequence had ended before
    probabilities: Float[Tensor, "b v"]  # sampled from, after temperature, top-k and top-p
    finished: Bool[Tensor, " b"]  # which sequences have ended, this step included


def generate(
    model: Model,
    prompt: Int[Tensor, "b t"],
    *,
    keep: Bool[Tensor, "b t"] | None = None,
    max_length: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    greedy: bool = False,
    seed: int = 0,
    use_cache: bool = True,
    tap: Tap = NO_TAP,
) -> Iterator[GenerationStep]:
    """Steps until every sequence has ended, `max_length` tokens were generated or positions end.

    A decoder continues the prompt, whose padding must be on the left; an encoder-decoder
    reads it as its source and begins with `config.bos_id`. True in `keep` keeps a token; without
    it every ID but `config.pad_id` is kept. `greedy` is a temperature of 0. Tokens are sampled
    with `seed`, on the CPU: the same on every device where probabilities are. With the cache a
    step costs the forward pass of one token, without it that of all tokens so far. The tap sees
    every pass. ValueError for invalid arguments.
    """
    sampling = Sampling(0.0 if greedy else temperature, top_k, top_p)
    if fault := sampling.fault():
        raise ValueError(fault)
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}.")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be between 0 and {2**63 - 1:,}, not {seed}.")
    state = DecodingState(model, prompt, keep, use_cache, tap)
    generator, eos_ids = torch.Generator().manual_seed(seed), model.config.generation.eos_ids
    padding = (model.config.pad_id, *eos_ids, UNNAMED)
    padding_id = next(token for token in padding if token is not None)

    def steps() -> Iterator[GenerationStep]:
        logits = state.first_logits
        ends = torch.tensor(eos_ids, dtype=torch.long, device=logits.device)
        finished = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
        last = min(max_length, state.room)
        for step in range(1, last + 1):
            probabilities = choose_from(logits, sampling)
            ids = torch.where(finished, padding_id, sample(probabilities, sampling, generator))
            finished = finished | torch.isin(ids, ends)
            yield GenerationStep(ids, probabilities, finished)
            if finished.all() or step == last:
                return
            logits = state.read(ids[:, None])[:, -1]

    return steps()


def start_ids(model: Model, prompt: Int[Tensor, "b s"]) -> Int[Tensor, "b t"]:
    """The first IDs of the decoder: the prompt, or the start token of an encoder-decoder."""
    if model.config.kind != "encoder-decoder":
        return prompt
    start = UNNAMED if model.config.bos_id is None else model.config.bos_id
    return torch.full_like(prompt[:, :1], start)


def check_prompt(
    model: Model, prompt: Int[Tensor, "b t"], keep: Bool[Tensor, "b t"] | None = None
) -> None:
    """ValueError for a model that predicts no next token, or a prompt that it cannot continue."""
    if model.config.head != "language-model" or model.decoder is None:
        raise ValueError("Only a decoder with a language-model head can write.")
    if not 1 <= prompt.shape[1] <= model.config.max_len:
        raise ValueError(f"A prompt has 1 to {model.config.max_len} tokens, not {prompt.shape[1]}.")
    if keep is not None and keep.shape != prompt.shape:
        shapes = f"{tuple(keep.shape)} and {tuple(prompt.shape)}"
        raise ValueError(f"keep and the prompt must have one shape, not {shapes}.")
    keep = keep_of(prompt, model.config.pad_id) if keep is None else keep
    if keep is None or model.config.kind == "encoder-decoder":
        return
    if not keep.any(1).all():
        raise ValueError("A prompt is all padding: it needs at least one other token.")
    if not keep[:, -1].all():
        raise ValueError("A prompt ends in padding: put it on the left, before the first token.")


class DecodingState:
    """The state of a decoder between two tokens: the encoded source, its cache and its padding.

    The caller adds tokens (`read`). `first_logits` are those of the first generated token.
    Cost of a step: the forward pass of the tokens added, without the cache that of all.
    """

    def __init__(
        self,
        model: Model,
        prompt: Int[Tensor, "b t"],
        keep: Bool[Tensor, "b t"] | None = None,
        use_cache: bool = True,
        tap: Tap = NO_TAP,
    ) -> None:
        check_prompt(model, prompt, keep)
        self._model = model
        self._tap = tap
        self.keep = keep_of(prompt, model.config.pad_id) if keep is None else keep
        self._memory = self._memory_keep = None
        if model.config.kind == "encoder-decoder":
            self.keep, self._memory_keep = None, self.keep
            with evaluating(model):
                self._memory = model.encode(prompt, self._memory_keep, tap)
        self.cache = KeyValueCache.empty(model.config.n_layers) if use_cache else None
        self._ids = start_ids(model, prompt)
        self.n_start = self._ids.shape[1]
        self.room = model.config.max_len - self.n_start + 1  # tokens before the positions end
        logits = self._decode(self._ids, n_read=1)[:, -1]
        self.first_logits = ban_tokens(logits, model.config, first=self.n_start == 1)

    def read(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Add tokens to every row; the logits of the token after each of them."""
        if self.keep is not None:
            self.keep = torch.cat((self.keep, torch.ones_like(ids, dtype=torch.bool)), 1)
        n_read = ids.shape[1]
        if self.cache is None:
            self._ids = ids = torch.cat((self._ids, ids), 1)
        return ban_tokens(self._decode(ids, n_read), self._model.config, first=False)

    def _decode(self, ids: Tensor, n_read: int) -> Float[Tensor, "b t v"]:
        """Logits after the last `n_read` of these tokens."""
        keep, last = self.keep, slice(-n_read, None)
        if keep is None and self.cache is None:  # padding that was generated is a token here
            keep = torch.ones_like(ids, dtype=torch.bool)
        memory, memory_keep = (
            None if whole is None else whole.expand(len(ids), *whole.shape[1:])
            for whole in (self._memory, self._memory_keep)
        )
        with evaluating(self._model):
            return self._model.decode(ids, memory, memory_keep, keep, self.cache, last, self._tap)

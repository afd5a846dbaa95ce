"""Writing: one token after another, each drawn from what the model expects next."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.cache import KeyValueCache
from models.config import TransformerConfig
from models.masking import keep_of
from models.plain import PlainData, type_fault
from models.transformer import Transformer, evaluating

FIRST_OF_ALL = 0
"""What a model begins with, or fills up with, when its config names no token for it."""


@dataclass(frozen=True)
class Sampling(PlainData):
    """How the next token is chosen; a temperature of 0 takes the likeliest."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def fault(self) -> str | None:
        """One sentence saying why nothing can be chosen like this, or None."""
        if not 0 <= self.temperature < math.inf:
            return f"temperature must be 0 or more, not {self.temperature}."
        if self.top_k is not None and self.top_k < 1:
            return f"top_k must be at least 1, not {self.top_k}."
        if self.top_p is not None and not 0 < self.top_p <= 1:
            return f"top_p must be above 0 and at most 1, not {self.top_p}."
        return type_fault(self)


@dataclass(frozen=True, eq=False)
class Step:
    """One token for every sequence of the batch."""

    ids: Int[Tensor, " b"]
    """The tokens written; the padding token (or the end token) where a sequence had ended."""
    probabilities: Float[Tensor, "b v"]
    """What they were drawn from, after temperature, top-k and top-p."""
    finished: Bool[Tensor, " b"]
    """Which sequences have written their end token, this step included."""


def generate(
    model: Transformer,
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
) -> Iterator[Step]:
    """Steps until every sequence has ended or `max_length` tokens were written.

    A decoder continues the prompt, whose padding must be on the left; an encoder-decoder
    reads it as its source and begins with `config.bos_id`. What the config bans is never
    written. Writing also stops where the model's positions end. `greedy`, or a
    temperature of 0, takes the likeliest token; the rest is drawn with `seed`. With the
    cache a step costs one token's pass, without it one pass over everything so far.
    ValueError for choices that mean nothing.
    """
    sampling = Sampling(0.0 if greedy else temperature, top_k, top_p)
    if fault := sampling.fault():
        raise ValueError(fault)
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}.")
    if model.config.head != "language-model" or model.decoder is None:
        raise ValueError("Only a decoder with a language-model head can write.")
    if prompt.shape[1] > model.config.max_len or not prompt.numel():
        raise ValueError(f"A prompt has 1 to {model.config.max_len} tokens, not {prompt.shape[1]}.")
    return _steps(
        model,
        prompt,
        keep_of(prompt, model.config.pad_id) if keep is None else keep,
        max_length,
        sampling,
        torch.Generator().manual_seed(seed),
        use_cache,
    )


def _steps(
    model: Transformer,
    prompt: Tensor,
    prompt_keep: Tensor | None,
    max_length: int,
    sampling: Sampling,
    generator: torch.Generator,
    use_cache: bool,
) -> Iterator[Step]:
    config = model.config
    batch = len(prompt)
    memory = memory_keep = None
    written, keep = prompt, prompt_keep
    if config.kind == "encoder-decoder":
        with evaluating(model):
            memory, memory_keep = model.encode(prompt, prompt_keep), prompt_keep
        written, keep = beginning(model, prompt), None
    cache = KeyValueCache.empty(config.n_layers) if use_cache else None
    finished = torch.zeros(batch, dtype=torch.bool, device=prompt.device)
    filler = next(i for i in (config.pad_id, config.eos_id, FIRST_OF_ALL) if i is not None)
    unread = written
    for _ in range(min(max_length, config.max_len - written.shape[1] + 1)):
        if keep is None and cache is None:  # else its own padding tokens would be left out
            keep = torch.ones_like(written, dtype=torch.bool)
        with evaluating(model):
            last = slice(-1, None)
            logits = model.decode(unread, memory, memory_keep, keep, cache, last)[:, -1]
        logits = allowed(logits, config, first=written.shape[1] == 1)
        probabilities = choose_from(logits, sampling)
        ids = drawn(probabilities, sampling, generator)
        ids = torch.where(finished, filler, ids)
        for end in (config.eos_id, *config.more_eos_ids):
            finished = finished if end is None else finished | (ids == end)
        yield Step(ids, probabilities, finished)
        if finished.all():
            return
        written = torch.cat((written, ids[:, None]), 1)
        keep = None if keep is None else torch.cat((keep, torch.ones_like(keep[:, :1])), 1)
        unread = written if cache is None else ids[:, None]


def written(
    model: Transformer, source: Int[Tensor, "b s"], max_length: int = 50, **how: object
) -> Int[Tensor, "b t"]:
    """All ids of `generate`, behind the prompt or the start token."""
    steps = generate(model, source, max_length=max_length, **how)  # type: ignore[arg-type]
    return torch.cat([beginning(model, source), *(step.ids[:, None] for step in steps)], 1)


def beginning(model: Transformer, prompt: Int[Tensor, "b s"]) -> Int[Tensor, "b t"]:
    """What stands there before the first step: the prompt, or the start token of two stacks."""
    if model.config.kind != "encoder-decoder":
        return prompt
    start = FIRST_OF_ALL if model.config.bos_id is None else model.config.bos_id
    return torch.full_like(prompt[:, :1], start)


def allowed(
    logits: Float[Tensor, "*b v"], config: TransformerConfig, first: bool
) -> Float[Tensor, "*b v"]:
    """The logits of what may be written: some tokens never, and two stacks may begin with one."""
    if first and config.first_id is not None and config.kind == "encoder-decoder":
        nothing = torch.full_like(logits, -math.inf)
        return nothing.index_fill(-1, torch.tensor(config.first_id, device=logits.device), 0.0)
    if not config.banned_ids:
        return logits
    banned = torch.tensor(config.banned_ids, device=logits.device)
    return logits.index_fill(-1, banned, -math.inf)


def allowed_rows(
    logits: Float[Tensor, "t v"], config: TransformerConfig, first: bool
) -> Float[Tensor, "t v"]:
    """The same of one step after another; `first` says whether the first of them begins."""
    return torch.cat((allowed(logits[:1], config, first), allowed(logits[1:], config, False)))


def choose_from(logits: Float[Tensor, "b v"], sampling: Sampling) -> Float[Tensor, "b v"]:
    """Probabilities to draw from: logits ÷ temperature, softmax, top-k, top-p, renormalised.

    Temperature 0 puts everything on the likeliest token, the lowest id of equals.
    Source of top-p: The Curious Case of Neural Text Degeneration (Holtzman et al. 2019).
    """
    if sampling.temperature == 0:
        best = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)
    behind = logits - logits.max(-1, keepdim=True).values  # a tiny temperature then makes no NaN
    smallest = torch.finfo(logits.dtype).tiny
    probabilities = (behind / max(sampling.temperature, smallest)).softmax(-1)
    if sampling.top_k is not None:
        probabilities = keep_top_k(probabilities, sampling.top_k)
    if sampling.top_p is not None:
        probabilities = keep_top_p(probabilities, sampling.top_p)
    return probabilities / probabilities.sum(-1, keepdim=True)


def drawn(
    probabilities: Float[Tensor, "b v"], sampling: Sampling, generator: torch.Generator
) -> Int[Tensor, " b"]:
    """One token per row; where all is on one there is nothing to draw."""
    if sampling.temperature == 0:
        return probabilities.argmax(-1)
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def keep_top_k(probabilities: Float[Tensor, "b v"], k: int) -> Float[Tensor, "b v"]:
    """Zero outside the k likeliest tokens; exactly k stay, whatever is equal."""
    best = probabilities.topk(min(k, probabilities.shape[-1]), -1)
    return torch.zeros_like(probabilities).scatter(-1, best.indices, best.values)


def keep_top_p(probabilities: Float[Tensor, "b v"], p: float) -> Float[Tensor, "b v"]:
    """Zero outside the smallest set of likeliest tokens that reaches p; one always stays."""
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked  # mass of everything likelier
    total = probabilities.sum(-1, keepdim=True)
    ranked = ranked.masked_fill(before >= p * total, 0.0)
    ranked[..., :1] = probabilities.max(-1, keepdim=True).values
    return torch.zeros_like(probabilities).scatter(-1, order, ranked)

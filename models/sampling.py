"""How the next token is chosen from the logits: temperature, top-k, top-p, one random draw."""

import math
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import LARGEST_SIZE, TransformerConfig
from models.config_fields import PlainData, number_field

HOTTEST = 1_000_000_000  # every temperature near it samples all tokens alike


@dataclass(frozen=True)
class Sampling(PlainData):
    """How the next token is chosen; a temperature of 0 takes the likeliest (greedy decoding)."""

    temperature: float = number_field(1.0, 0, HOTTEST)
    top_k: int | None = number_field(None, 1, LARGEST_SIZE)
    top_p: float | None = None

    def __post_init__(self) -> None:
        """Real numbers of other libraries, such as NumPy, become Python's."""
        for name in ("temperature", "top_p"):
            value = getattr(self, name)
            if type(value) not in (bool, int) and isinstance(value, Real):
                with suppress(OverflowError):
                    object.__setattr__(self, name, float(value))

    def fault(self) -> str | None:
        """One sentence that says why no token can be chosen like this, or None."""
        fault = super().fault()
        if fault is None and self.top_p is not None and not 0 < self.top_p <= 1:
            return f"top_p must be above 0 and at most 1, not {str(self.top_p)[:40]}."
        return fault


def ban_tokens(
    logits: Float[Tensor, "*b v"], config: TransformerConfig, first: bool
) -> Float[Tensor, "*b v"]:
    """The logits with −∞ for tokens that `config.generation` bans.

    For the `first` token of an encoder-decoder it may allow a single one.
    """
    forced, banned = config.generation.forced_first_id, config.generation.banned_ids
    if first and forced is not None and config.kind == "encoder-decoder":
        nothing = torch.full_like(logits, -math.inf)
        return nothing.index_fill(-1, torch.tensor(forced, device=logits.device), 0.0)
    if not banned:
        return logits
    return logits.index_fill(-1, torch.tensor(banned, device=logits.device), -math.inf)


def choose_from(logits: Float[Tensor, "b v"], sampling: Sampling) -> Float[Tensor, "b v"]:
    """Probabilities to sample from: logits ÷ temperature, softmax, top-k, top-p, renormalised.

    Temperature 0 puts everything on the likeliest token, the lowest ID of equals.
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


def keep_top_k(probabilities: Float[Tensor, "b v"], k: int) -> Float[Tensor, "b v"]:
    """Zero outside the k likeliest tokens; exactly k stay, even among equals.

    Source: Hierarchical Neural Story Generation (Fan et al. 2018), section 5.4.
    """
    best = probabilities.topk(min(k, probabilities.shape[-1]), -1)
    return torch.zeros_like(probabilities).scatter(-1, best.indices, best.values)


def keep_top_p(probabilities: Float[Tensor, "b v"], p: float) -> Float[Tensor, "b v"]:
    """Zero outside the smallest set of likeliest tokens whose sum reaches p; one always stays.

    Source: The Curious Case of Neural Text Degeneration (Holtzman et al. 2019), section 3.1.
    """
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked  # sum of everything likelier
    total = probabilities.sum(-1, keepdim=True)
    ranked = ranked.masked_fill(before >= p * total, 0.0)
    ranked[..., :1] = probabilities.max(-1, keepdim=True).values
    return torch.zeros_like(probabilities).scatter(-1, order, ranked)


def sample(
    probabilities: Float[Tensor, "b v"], sampling: Sampling, generator: torch.Generator
) -> Int[Tensor, " b"]:
    """One token ID per row; at temperature 0 the generator is not used.

    The row's largest p ÷ e, where the e are drawn from the exponential distribution, as
    `torch.multinomial` does on a CPU. They are drawn on the generator's device, so that one seed
    samples alike on every device. ValueError where a probability is not finite.
    """
    if sampling.temperature == 0:
        return probabilities.argmax(-1)
    if not probabilities.isfinite().all():
        raise ValueError("No token can be sampled: a probability is not a finite number.")
    noise = torch.empty_like(probabilities, device=generator.device)
    noise.exponential_(generator=generator)
    return (probabilities / noise.to(probabilities.device)).argmax(-1)

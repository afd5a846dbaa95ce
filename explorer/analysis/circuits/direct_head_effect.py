"""What one head does in the clean text of a pair, at the position whose output is read."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.circuits.text_pairs import TokenPair
from explorer.analysis.head_circuits import composition
from explorer.analysis.logit_attribution import Contributions, contributions, direct_logits
from explorer.analysis.output_change import has_words, last_streams
from explorer.analysis.residual_writes import value_writes
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.inference.results_cache import cached

SOURCES, RAISED, LOWERED = 5, 4, 3
"""Source tokens that are listed, and the tokens that each raises and lowers most."""


@dataclass(frozen=True)
class SourceToken:
    """What a head would write if its whole weight were on this token of the text.

    `weight` is its attention weight there. `to_answer` is what a weight of 1 adds to the logit of
    `answer` minus that of `against`. `raised` and `lowered` are token IDs and logits minus the
    mean over the vocabulary, the largest changes first.
    """

    place: int
    weight: float
    to_answer: float
    raised: tuple[tuple[int, float], ...]
    lowered: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class DirectEffect:
    """What a head adds directly to the logits of both answers, and their difference in the pass."""

    to_answer: float
    to_against: float
    logit_difference: float

    @property
    def difference(self) -> float:
        return self.to_answer - self.to_against


def clean_pass(opened: OpenModel, pair: TokenPair) -> ForwardPass:
    """The forward pass of the clean text; cached."""
    return run_text(opened, pair.texts.clean)


def source_tokens(
    opened: OpenModel, pair: TokenPair, layer: int, head: int
) -> tuple[SourceToken, ...]:
    """The tokens that the head attends to most from the output position, the most first.

    Empty for a model whose output is no token. Costs sources × vocabulary × d.
    """
    if not has_words(opened.config):
        return ()
    forward, place = clean_pass(opened, pair), pair.place
    part = f"{last_streams(opened.config)[0]}.self_attn"
    weights = forward.weights(part, layer, head)[place]
    most = weights.topk(min(SOURCES, int((weights > 0).sum()))).indices
    logits = direct_logits(forward, layer, place, value_writes(forward, part, layer, head)[most])
    to_answer = logits[:, pair.answer] - logits[:, pair.against]
    relative = logits - logits.mean(-1, keepdim=True)
    return tuple(
        SourceToken(
            int(source),
            float(weights[source]),
            float(to_answer[at]),
            _strongest(relative[at], RAISED),
            _strongest(relative[at], LOWERED, lowest=True),
        )
        for at, source in enumerate(most)
    )


def direct_effect(opened: OpenModel, pair: TokenPair, layer: int, head: int) -> DirectEffect:
    """The direct effect of one head; all heads are computed together and cached."""
    both = [_contributions(opened, pair, option) for option in (pair.answer, pair.against)]
    part = f"{last_streams(opened.config)[0]}.self_attn"
    to_answer, to_against = (float(of_option.heads[part][layer, head]) for of_option in both)
    return DirectEffect(to_answer, to_against, both[0].logit - both[1].logit)


def composition_of(opened: OpenModel, layer: int, head: int) -> Tensor:
    """Q-, K- and V-composition with every earlier head, (3, layer, heads); cached."""
    key = "composition", layer, head
    return cached(opened, key, lambda: composition(opened.model, layer, head))


def _contributions(opened: OpenModel, pair: TokenPair, option: int) -> Contributions:
    key = "contributions", pair.texts.clean, "", pair.place, option
    return cached(opened, key, lambda: contributions(clean_pass(opened, pair), pair.place, option))


def _strongest(
    values: Tensor, count: int, *, lowest: bool = False
) -> tuple[tuple[int, float], ...]:
    top = torch.topk(values, min(count, len(values)), largest=not lowest)
    return tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))

"""The metrics of the output that distinguish a clean text from a corrupted one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from explorer.analysis.output_change import has_words, with_absence
from models import Transformer, TransformerConfig
from models.trace import Trace, trace

LOGIT_DIFFERENCE, PROBABILITY = "Logit difference", "Probability"
KL, LOSS, CLASS_SCORE, VALUE = "KL divergence", "Loss", "Class score", "Value"

ANSWERS_READ = {LOGIT_DIFFERENCE: 2, PROBABILITY: 1, LOSS: 1, CLASS_SCORE: 1, VALUE: 1, KL: 0}
"""The number of answers that a metric reads: both, the first, or none."""

UNITS = {
    LOGIT_DIFFERENCE: "logits",
    PROBABILITY: "",
    KL: "nats",
    LOSS: "nats",
    CLASS_SCORE: "logits",
    VALUE: "",
}

Outcome = Callable[[Tensor], Tensor]
"""A function from the logits (b, options) at the output position to one number per row, (b,)."""


def metric_in_words(metric: str) -> str:
    return metric if metric == KL else metric.lower()


def metrics_of(config: TransformerConfig) -> tuple[str, ...]:
    """The metrics of a model with this output head, the usual one first."""
    if config.score_function == "none":
        return (VALUE,)
    if config.score_function == "sigmoid":
        return CLASS_SCORE, PROBABILITY, KL, LOSS
    if config.head == "classifier":
        return LOGIT_DIFFERENCE, CLASS_SCORE, PROBABILITY, KL, LOSS
    return LOGIT_DIFFERENCE, PROBABILITY, KL, LOSS


def why_no_gradient(metric: str) -> str:
    """Why EAP cannot estimate this metric, in a sentence; empty where it can.

    KL(clean ‖ other) has its minimum at the clean text, so its gradient is 0 there.
    """
    if metric != KL:
        return ""
    return (
        "The gradient of KL divergence is 0 at the clean text, so EAP finds nothing: choose EAP-IG."
    )


def outcome_of(
    config: TransformerConfig, name: str, answer: int, against: int, clean: Tensor
) -> Outcome:
    """The metric of this name; `clean` (options,) are the logits of the clean text.

    KL is that of the clean text's distribution to the other's, so it is 0 for the clean text.
    Labels with probabilities of their own are independent, so their KL add up.
    """
    is_own = config.score_function == "sigmoid"
    if name == LOGIT_DIFFERENCE:
        return lambda logits: logits[:, answer] - logits[:, against]
    if name == PROBABILITY:
        return lambda logits: config.scores(logits)[:, answer]
    if name == LOSS:
        return lambda logits: -(logsigmoid(logits) if is_own else logits.log_softmax(-1))[:, answer]
    if name in (CLASS_SCORE, VALUE):
        return lambda logits: logits[:, answer]
    choices = with_absence if is_own else partial(torch.unsqueeze, dim=-2)
    before = choices(clean).log_softmax(-1)
    return lambda logits: (before.exp() * (before - choices(logits).log_softmax(-1))).sum((-2, -1))


@dataclass(frozen=True, eq=False)
class Contrast:
    """The IDs (1, t) of a clean and a corrupted text, and the metric that distinguishes them.

    `outcome` gives one number per row, (b,), from the logits (b, options) at `place`, which a
    classifier does not use. Texts of unequal length have an output position each, and `partners`,
    the positions (clean, corrupted) that are patched; no other position is.
    """

    model: Transformer
    clean: Tensor
    corrupted: Tensor
    place: int
    outcome: Callable[[Tensor], Tensor]
    corrupted_place: int = -1
    partners: tuple[tuple[int, int], ...] = ()

    @property
    def swapped(self) -> "Contrast":
        """The same with the corrupted text as the clean one."""
        place = self.corrupted_place if self.partners else self.place
        partners = tuple((b, a) for a, b in self.partners)
        swapped = replace(self, clean=self.corrupted, corrupted=self.clean, partners=partners)
        return replace(swapped, place=place, corrupted_place=self.place)

    def corrupted_trace(self, sites: Sequence[str]) -> Trace:
        """The pass of the corrupted text, with its values at the positions of the clean one.

        A position without a partner has the value of the clean text. Costs a pass of each text, or
        of the corrupted one where both are equally long.
        """
        other = self.swapped
        passed = trace(self.model, other.clean, sites=sites, read_at=other.read_at)
        if not self.partners:
            return passed
        values = trace(self.model, self.clean, sites=sites, read_at=self.read_at).values
        here, there = (list(places) for places in zip(*self.partners, strict=True))
        for site, value in values.items():
            values[site] = value.clone()
            values[site][..., here, :] = passed[site][..., there, :]
        return replace(passed, values=values)

    @property
    def config(self) -> TransformerConfig:
        return self.model.config

    @property
    def read_at(self) -> slice:
        """The output position: no other logits are needed."""
        return slice(self.place, self.place + 1) if has_words(self.config) else slice(None)

    def metric_of(self, output: Tensor) -> Tensor:
        """The metric of each row of a model's output at `read_at`, (b,)."""
        return self.outcome(output[:, 0] if output.dim() == 3 else output)

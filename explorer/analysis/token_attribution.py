"""One answer attributed to the tokens of the input, and the deletion curve of each method.

Every method gives each token a number. To delete a token is to replace its embedding by the mean
embedding of the vocabulary; its position stays. The integrated gradients begin where all of these
tokens are deleted, so the end of every deletion curve is their baseline. Special tokens stay.
Shapes: t tokens of the first stack, n of them deleted, d width of the model.
Sources: Axiomatic Attribution for Deep Networks (Sundararajan et al. 2017), section 3; ERASER
(DeYoung et al. 2020), section 4.2, on deletion in the order of an attribution; Attention is not
Explanation (Jain and Wallace 2019) and Attention is not not Explanation (Wiegreffe and Pinter
2019), on the question.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.batched_passes import RecordedPass, multiplications, run_branches
from explorer.analysis.circuit_metrics import LOSS, outcome_of
from explorer.analysis.information_flow import cached_route, is_computable
from explorer.analysis.logit_attribution import positions_read
from explorer.analysis.output_change import has_words
from explorer.analysis.rollout import half_residual_layers, rollout
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import PassShape, pass_size
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of, segments_of
from models.gradients import gradients
from models.interventions import Edit, Replace
from models.trace import trace

ATTENTION, ROLLOUT, IMPORTANCE = "attention", "rollout", "importance"
GRADIENT, INTEGRATED = "gradient × input", "integrated gradients"
METHODS, STEPS, DRAWS, MOST_POINTS = 5, 32, 8, 12
BYTES_HELD = 64_000_000
"""The most memory for the points of one batch."""

Report = Callable[[float], None]


class AttributionError(ValueError):
    """Why an answer is not attributed to tokens, in one sentence."""


@dataclass(frozen=True, eq=False)
class ChosenAnswer:
    """An option of the output at a place of the last stack, and the pass that it is of.

    `deletable` are the places in the first stack of the tokens that can be deleted, in order.
    """

    forward: ForwardPass
    base: RecordedPass
    segments: Tensor | None
    option: int
    deletable: tuple[int, ...]

    @property
    def stack(self) -> str:
        return self.forward.config.stacks[0]

    @property
    def part(self) -> str:
        return f"{self.stack}.self_attn"

    @cached_property
    def embedded(self) -> dict[str, Tensor]:
        """The embeddings (t, d), and their sums with positions and segments. Costs a pass."""
        sites = [f"{self.stack}.embed", f"{self.stack}.sum"]
        passed = trace(self.base.model, *self.base.inputs, sites=sites, **self.segments_of(1))
        return {site: passed[site][0] for site in sites}

    @property
    def embedding(self) -> Tensor:
        return self.embedded[f"{self.stack}.embed"]

    @property
    def baseline(self) -> Tensor:
        """The embeddings with all deletable tokens deleted, (t, d)."""
        of_stack: Any = getattr(self.base.model, self.stack)
        changed = self.embedding.clone()
        mean = of_stack.embedding.weight.detach().mean(0) * of_stack.embedding_scale
        changed[list(self.deletable)] = mean
        return changed

    def segments_of(self, rows: int) -> dict[str, Any]:
        """The segments of a batch, as an argument of a model that has them."""
        return {} if self.segments is None else {"segments": self.segments.expand(rows, -1)}

    def log_probability(self, logits: Tensor) -> Tensor:
        """ln p of the option, (b,), from logits (b, options)."""
        return -outcome_of(self.forward.config, LOSS, self.option, 0, logits)(logits)


def keeps_first(forward: ForwardPass) -> bool:
    """Whether the first token stays: a decoder reads a text that begins with no special token.

    Heads that find nothing attend to it then, so that without it every answer changes. Source:
    Efficient Streaming Language Models with Attention Sinks (Xiao et al. 2024), section 3.1.
    """
    return forward.config.kind == "decoder" and not forward.tokens[0].special


def chosen_answer(opened: OpenModel, forward: ForwardPass, place: int, option: int) -> ChosenAnswer:
    """The answer to attribute; AttributionError where there is none."""
    config = opened.config
    if config.head == "none":
        raise AttributionError("This model has no output head, so it gives no answer to attribute.")
    if config.score_function == "none":
        raise AttributionError(
            "This model predicts values without probabilities, so no deletion curve can be drawn: "
            "choose a model that predicts tokens or classes."
        )
    tokens = forward.tokens
    end = place + 1 if config.kind == "decoder" and has_words(config) else len(tokens)
    places = range(int(keeps_first(forward)), end)
    deletable = tuple(at for at in places if not tokens[at].special)
    if len(deletable) < 2:
        raise AttributionError(
            "An answer is attributed to at least two tokens that are not special: enter a longer "
            "text, or choose a later output position."
        )
    inputs = [ids_of([side]) for side in (forward.source, forward.target) if side]
    base = RecordedPass(forward.trace, inputs, place)
    segments = segments_of(opened, [tokens]) if config.kind == "encoder" else None
    return ChosenAnswer(forward, base, segments, option, deletable)


# ---- attention -----------------------------------------------------------------------------


def attention_shares(answer: ChosenAnswer) -> dict[str, Tensor]:
    """Attention and rollout of every token, (t,), for the position that the answer is read from.

    Attention is the row of the last layer's mean weights over the heads; where a classifier reads
    several positions, the mean of their rows. In an encoder-decoder it is the row of the last
    cross-attention, and rollout is that row times the rollout of the encoder.
    """
    forward, place, part = answer.forward, answer.base.position, answer.part
    rolled = rollout(half_residual_layers(forward, part, forward.part(part).layers))
    if forward.config.kind == "encoder-decoder":
        attention = _last_mean(forward, "decoder.cross_attn")[place]
        return {ATTENTION: attention, ROLLOUT: attention @ rolled}
    places, shares = positions_read(forward, place)
    read = rolled.new_zeros(len(rolled))
    read[places] = shares[:, 0].to(read)
    return {ATTENTION: read @ _last_mean(forward, part), ROLLOUT: read @ rolled}


def _last_mean(forward: ForwardPass, part: str) -> Tensor:
    """The mean weights over the heads of the last layer, (queries, keys)."""
    of, total = forward.part(part), torch.zeros(())
    for weights in forward.some_heads(part, of.layers - 1):
        total = total + weights.sum(0)
    return total / of.heads


# ---- gradients -----------------------------------------------------------------------------


def _gradient(answer: ChosenAnswer, points: Tensor) -> Tensor:
    """∂ ln p / ∂ embedding at these points (b, t, d), of the same shape."""
    site, base, rows = f"{answer.stack}.embed", answer.base, len(points)
    at = slice(base.position, base.position + 1)
    return gradients(
        base.model,
        *(ids.expand(rows, -1) for ids in base.inputs),
        of=lambda out: answer.log_probability(out[:, 0] if out.dim() == 3 else out).sum(),
        sites=[site],
        edits=[Replace(site, points)],
        read_at=at if has_words(answer.forward.config) else slice(None),
        **answer.segments_of(rows),
    ).gradients[site]


def gradient_times_input(answer: ChosenAnswer) -> Tensor:
    """(∂ ln p / ∂ embedding) · embedding of every token, (t,). A forward and a backward pass."""
    return (_gradient(answer, answer.embedding[None])[0] * answer.embedding).sum(-1)


def integrated_gradients(
    answer: ChosenAnswer, steps: int = STEPS, report: Report = lambda done: None
) -> Tensor:
    """The mean gradient between baseline and embedding, times their difference, (t,).

    The gradients are those at the middles of `steps` equal parts of the line. By completeness they
    would sum to the change of ln p if there were infinitely many. Costs a forward and a backward
    pass for each, in batches of bounded memory.
    """
    lengths = [ids.shape[1] for ids in answer.base.inputs]
    shape = PassShape(lengths[0], sum(lengths[1:]), leaves="graph")
    together = max(1, BYTES_HELD // pass_size(answer.forward.config, shape).peak)
    embedding, baseline = answer.embedding, answer.baseline
    total, shares = torch.zeros_like(embedding), (torch.arange(steps) + 0.5) / steps
    for first in range(0, steps, together):
        some = shares[first : first + together, None, None].to(embedding)
        total += _gradient(answer, torch.lerp(baseline, embedding, some)).sum(0)
        report(min(1.0, (first + together) / steps))
    return (total / steps * (embedding - baseline)).sum(-1)


# ---- deletion ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """The answer's probability after `counts` tokens are deleted in the order of each method.

    `curves` are (points,) by method, `random` is (draws, points): their orders are random.
    `change` is that of ln p from the text with everything deleted to the text.
    """

    counts: tuple[int, ...]
    curves: dict[str, Tensor]
    random: Tensor
    change: float

    def area(self, curve: Tensor) -> Tensor:
        """The area under curves (…, points) over the share of deleted tokens, between 0 and 1."""
        return torch.trapezoid(curve, torch.tensor(self.counts).to(curve) / self.counts[-1])

    @property
    def areas(self) -> dict[str, float]:
        return {name: float(self.area(curve)) for name, curve in self.curves.items()}


def points_of(answer: ChosenAnswer) -> tuple[int, ...]:
    """The numbers of deleted tokens on a curve, from 0 to all; of many, some evenly chosen."""
    points = min(count := len(answer.deletable), MOST_POINTS)
    return tuple(round(at * count / points) for at in range(points + 1))


def deletion_curves(
    answer: ChosenAnswer, values: dict[str, Tensor], report: Report = lambda done: None
) -> DeletionCurves:
    """The deletion curve of every method, its largest value first, and of random orders.

    The sign counts: a token that speaks against the answer comes last. Costs about
    (methods + draws) × points passes, in batches.
    """
    generator, places = torch.Generator().manual_seed(0), torch.tensor(answer.deletable)
    orders = [places[of[places].argsort(descending=True, stable=True)] for of in values.values()]
    orders += [places[torch.randperm(len(places), generator=generator)] for _ in range(DRAWS)]
    counts, baseline, stack = points_of(answer), answer.baseline, answer.stack
    deleted = [order[:count] for order in orders for count in counts[1:-1]]
    deleted += [places[:0], places]
    of_stack: Any = getattr(answer.base.model, stack)
    around = answer.embedded[f"{stack}.sum"] - answer.embedding

    def edit_of(rows: range) -> Edit:
        changed = answer.embedding.repeat(len(rows), 1, 1)
        for row, at in enumerate(rows):
            changed[row, deleted[at]] = baseline[deleted[at]]
        with torch.no_grad():
            return Replace(f"{stack}.0.resid_pre", of_stack.embedding_norm(changed + around))

    logits = run_branches(answer.base, answer.part, 0, len(deleted), edit_of, report=report)
    logs = answer.log_probability(logits)
    between = logs[:-2].exp().view(len(orders), -1)
    first, last = (end.exp().expand(len(orders), 1) for end in logs[-2:])
    curves = torch.cat([first, between, last], 1)
    by_method = dict(zip(values, curves, strict=False))
    return DeletionCurves(counts, by_method, curves[len(values) :], float(logs[-2] - logs[-1]))


# ---- all of it -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TokenAttribution:
    """The numbers (t,) of every method, and their deletion curves."""

    values: dict[str, Tensor]
    curves: DeletionCurves

    @property
    def error(self) -> float:
        """Of completeness: |Σ of integrated gradients − change| ÷ |change|."""
        total, change = float(self.values[INTEGRATED].double().sum()), self.curves.change
        return abs(total - change) / abs(change) if change else math.inf


def attribute_tokens(
    opened: OpenModel,
    answer: ChosenAnswer,
    steps: int = STEPS,
    report: Report = lambda done: None,
) -> TokenAttribution:
    """Every method and every deletion curve; `cost_of` says what they cost.

    Too long a text has no importance.
    """
    of_gradients, of_deletions = passes_of(answer, steps)
    share = of_gradients / (of_gradients + of_deletions)
    values = attention_shares(answer)
    if is_computable(answer.forward):
        at = answer.base.position if has_words(opened.config) else 0
        values[IMPORTANCE] = cached_route(opened, answer.forward, at).streams[answer.stack][0]
    values[GRADIENT] = gradient_times_input(answer)
    values[INTEGRATED] = integrated_gradients(answer, steps, lambda done: report(done * share))
    curves = deletion_curves(answer, values, lambda done: report(share + done * (1 - share)))
    return TokenAttribution(values, curves)


def passes_of(answer: ChosenAnswer, steps: int) -> tuple[int, int]:
    """How many passes the gradients and the deletions take; a backward pass counts as two."""
    return 3 * (steps + 1), (METHODS + DRAWS) * (len(points_of(answer)) - 2) + 2


def cost_of(answer: ChosenAnswer, steps: int = STEPS) -> int:
    """Multiplications of all passes."""
    return sum(passes_of(answer, steps)) * multiplications(answer.base, answer.part, 0)

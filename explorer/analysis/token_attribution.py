"""One answer attributed to the tokens of the input, and the deletion curve of each method.

Every method gives each token a number. To delete a token is to replace its embedding by the mean
embedding of the vocabulary; its position stays. The integrated gradients begin where all of these
tokens are deleted, so the end of every deletion curve is their baseline. Special tokens stay.
Shapes: t tokens of the first stack, n of them deleted, s steps, d width of the model.
Sources: Axiomatic Attribution for Deep Networks (Sundararajan et al. 2017), section 3; ERASER
(DeYoung et al. 2020), section 4.2, on deletion in the order of an attribution; Attention is not
Explanation (Jain and Wallace 2019) and Attention is not not Explanation (Wiegreffe and Pinter
2019), on the question.
"""

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
METHODS = (ATTENTION, ROLLOUT, IMPORTANCE, GRADIENT, INTEGRATED)
STEPS, DRAWS, MOST_POINTS = 32, 8, 12
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


def begins_plainly(forward: ForwardPass) -> bool:
    """Whether a decoder reads a text whose first token is not a special one."""
    return forward.config.kind == "decoder" and not forward.tokens[0].special


def chosen_answer(
    opened: OpenModel, forward: ForwardPass, place: int, option: int, *, deletes_first: bool = False
) -> ChosenAnswer:
    """The answer to attribute; AttributionError where there is none.

    Where a decoder's text begins without a special token, heads attend to the first token
    whenever they have nothing to read, so it stays unless `deletes_first`. Source: Efficient
    Streaming Language Models with Attention Sinks (Xiao et al. 2024), section 3.1.
    """
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
    first = int(begins_plainly(forward) and not deletes_first)
    deletable = tuple(at for at in range(first, end) if not tokens[at].special)
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
    forward, place = answer.forward, answer.base.position
    part = forward.parts[0]
    rolled = rollout(half_residual_layers(forward, part.name, part.layers))
    if forward.config.kind == "encoder-decoder":
        attention = _last_mean(forward, "decoder.cross_attn")[place]
        return {ATTENTION: attention, ROLLOUT: attention @ rolled}
    places, shares = positions_read(forward, place)
    read = rolled.new_zeros(len(rolled))
    read[places] = shares[:, 0].to(read)
    return {ATTENTION: read @ _last_mean(forward, part.name), ROLLOUT: read @ rolled}


def _last_mean(forward: ForwardPass, part: str) -> Tensor:
    """The mean weights over the heads of the last layer, (queries, keys)."""
    of = forward.part(part)
    total = sum(weights.sum(0) for weights in forward.some_heads(part, of.layers - 1))
    assert isinstance(total, Tensor)
    return total / of.heads


def importance_share(opened: OpenModel, answer: ChosenAnswer) -> dict[str, Tensor]:
    """The importance of every token in the map of the pass, (t,); empty for too long a text."""
    if not is_computable(answer.forward):
        return {}
    at = answer.base.position if has_words(opened.config) else 0
    return {IMPORTANCE: cached_route(opened, answer.forward, at).streams[answer.stack][0]}


# ---- gradients -----------------------------------------------------------------------------


def _gradient(answer: ChosenAnswer, points: Tensor) -> tuple[Tensor, Tensor]:
    """∂ ln p / ∂ embedding at these points (b, t, d), of the same shape, and ln p, (b,)."""
    site, base, rows = f"{answer.stack}.embed", answer.base, len(points)
    place = base.position
    read_at = slice(place, place + 1) if has_words(answer.forward.config) else slice(None)
    logs: list[Tensor] = []

    def of(output: Tensor) -> Tensor:
        logs.append(answer.log_probability(output[:, 0] if output.dim() == 3 else output))
        return logs[0].sum()

    passed = gradients(
        base.model,
        *(ids.expand(rows, -1) for ids in base.inputs),
        of=of,
        sites=[site],
        edits=[Replace(site, points)],
        read_at=read_at,
        **answer.segments_of(rows),
    )
    return passed.gradients[site], logs[0].detach()


def gradient_times_input(answer: ChosenAnswer) -> Tensor:
    """(∂ ln p / ∂ embedding) · embedding of every token, (t,). A forward and a backward pass."""
    gradient, _ = _gradient(answer, answer.embedding[None])
    return (gradient[0] * answer.embedding).sum(-1)


@dataclass(frozen=True, eq=False)
class IntegratedGradients:
    """The part of every token, (t,), in the change of ln p from the baseline to the text.

    By completeness they would sum to that change, `difference`, if the steps were infinitely many.
    """

    tokens: Tensor
    difference: float

    @property
    def error(self) -> float:
        """|Σ − difference| as a share of |difference|."""
        return abs(float(self.tokens.double().sum()) - self.difference) / abs(self.difference)


def integrated_gradients(
    answer: ChosenAnswer, steps: int = STEPS, report: Report = lambda done: None
) -> IntegratedGradients:
    """The mean gradient at s points between baseline and embedding, times their difference.

    The points are the middles of s equal parts of the line. Costs s forward and backward passes,
    in batches of bounded memory.
    """
    embedding, baseline = answer.embedding, answer.baseline
    ends = torch.stack([baseline, embedding])
    with torch.no_grad():
        before, after = answer.log_probability(_logits(answer, ends)).tolist()
    total, done = torch.zeros_like(embedding), 0
    shares = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    for some in shares.split(_together(answer)):
        points = torch.lerp(baseline, embedding, some[:, None, None].to(embedding))
        total += _gradient(answer, points)[0].sum(0)
        done += len(some)
        report(done / steps)
    return IntegratedGradients((total / steps * (embedding - baseline)).sum(-1), after - before)


def _together(answer: ChosenAnswer) -> int:
    """The number of points of one batch with its graph."""
    lengths = [ids.shape[1] for ids in answer.base.inputs]
    shape = PassShape(lengths[0], sum(lengths[1:]), leaves="graph")
    return max(1, BYTES_HELD // pass_size(answer.forward.config, shape).peak)


# ---- deletion ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """The answer's probability after `counts` tokens are deleted in the order of each method.

    `curves` are (points,) by method, `random` is (draws, points): their orders are random.
    """

    counts: tuple[int, ...]
    curves: dict[str, Tensor]
    random: Tensor

    def area(self, curve: Tensor) -> Tensor:
        """The area under curves (…, points) over the share of deleted tokens, between 0 and 1."""
        shares = torch.tensor(self.counts, dtype=curve.dtype) / self.counts[-1]
        return torch.trapezoid(curve, shares)

    @property
    def areas(self) -> dict[str, float]:
        return {name: float(self.area(curve)) for name, curve in self.curves.items()}


def points_of(answer: ChosenAnswer) -> tuple[int, ...]:
    """The numbers of deleted tokens on a curve, from 0 to all; of many, some evenly chosen."""
    count = len(answer.deletable)
    points = min(count, MOST_POINTS)
    return tuple(round(at * count / points) for at in range(points + 1))


def order_of(answer: ChosenAnswer, values: Tensor) -> Tensor:
    """The deletable places from the largest value to the smallest, (n,).

    The sign counts: a token that argues against the answer comes last.
    """
    places = torch.tensor(answer.deletable)
    return places[values[places].argsort(descending=True, stable=True)]


def deletion_curves(
    answer: ChosenAnswer,
    values: dict[str, Tensor],
    seed: int = 0,
    draws: int = DRAWS,
    report: Report = lambda done: None,
) -> DeletionCurves:
    """The deletion curve of every method and of random orders.

    Costs (methods + draws) × (points − 1) passes, in batches.
    """
    generator = torch.Generator().manual_seed(seed)
    places = torch.tensor(answer.deletable)
    orders = [order_of(answer, numbers) for numbers in values.values()]
    orders += [places[torch.randperm(len(places), generator=generator)] for _ in range(draws)]
    counts, embedding, baseline = points_of(answer), answer.embedding, answer.baseline
    deleted = [order[:count] for order in orders for count in counts[1:-1]]
    deleted += [places[:0], places]
    inner = len(counts) - 2

    def of_rows(rows: range) -> Tensor:
        changed = embedding.repeat(len(rows), 1, 1)
        for row, at in enumerate(rows):
            changed[row, deleted[at]] = baseline[deleted[at]]
        return changed

    logs = answer.log_probability(_logits_of(answer, len(deleted), of_rows, report))
    *between, first, last = logs.exp().split([inner] * len(orders) + [1, 1])
    curves = torch.stack([torch.cat([first, curve, last]) for curve in between])
    by_method = dict(zip(values, curves, strict=False))
    return DeletionCurves(counts, by_method, curves[len(values) :])


def _logits(answer: ChosenAnswer, points: Tensor) -> Tensor:
    """The logits (b, options) with these embeddings (b, t, d)."""
    return _logits_of(answer, len(points), lambda rows: points[rows.start : rows.stop])


def _logits_of(
    answer: ChosenAnswer,
    count: int,
    embeddings: Callable[[range], Tensor],
    report: Report = lambda done: None,
) -> Tensor:
    """The logits (count, options) of passes with these embeddings, in batches."""
    part, stack = answer.forward.parts[0].name, answer.stack
    of_stack: Any = getattr(answer.base.model, stack)
    around = answer.embedded[f"{stack}.sum"] - answer.embedding

    def edit_of(rows: range) -> Edit:
        with torch.no_grad():
            streams = of_stack.embedding_norm(embeddings(rows) + around)
        return Replace(f"{stack}.0.resid_pre", streams)

    return run_branches(answer.base, part, 0, count, edit_of, report=report)


# ---- all of it -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TokenAttribution:
    """The numbers (t,) of every method, and their deletion curves."""

    values: dict[str, Tensor]
    integrated: IntegratedGradients
    curves: DeletionCurves


def attribute_tokens(
    opened: OpenModel,
    answer: ChosenAnswer,
    steps: int = STEPS,
    report: Report = lambda done: None,
) -> TokenAttribution:
    """Every method and every deletion curve; `cost_of` says what they cost."""
    share = _cost_of_gradients(answer, steps) / cost_of(answer, steps)
    values = attention_shares(answer) | importance_share(opened, answer)
    values[GRADIENT] = gradient_times_input(answer)
    integrated = integrated_gradients(answer, steps, lambda done: report(done * share))
    values[INTEGRATED] = integrated.tokens
    curves = deletion_curves(answer, values, report=lambda done: report(share + done * (1 - share)))
    return TokenAttribution(values, integrated, curves)


def cost_of(answer: ChosenAnswer, steps: int = STEPS) -> int:
    """Multiplications of all passes."""
    orders, inner = len(METHODS) + DRAWS, len(points_of(answer)) - 2
    return _cost_of_gradients(answer, steps) + (orders * inner + 2) * _cost(answer)


def _cost_of_gradients(answer: ChosenAnswer, steps: int) -> int:
    """A backward pass takes the multiplications of two forward passes."""
    return 3 * (steps + 1) * _cost(answer)


def _cost(answer: ChosenAnswer) -> int:
    return multiplications(answer.base, answer.forward.parts[0].name, 0)

"""One answer attributed to the tokens of the input, and the deletion curve of each method.

Every method gives each token a number. To delete a token is to replace its embedding by the mean
embedding of the vocabulary; its position stays. The integrated gradients begin where all of these
tokens are deleted, so the end of every deletion curve is their baseline. Special tokens stay.
Shapes: t tokens of the first stack, b rows of a batch, d width of the model.
Sources: Axiomatic Attribution for Deep Networks (Sundararajan et al. 2017), section 3; ERASER
(DeYoung et al. 2020), section 4.2, on deletion in the order of an attribution.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.batched_passes import multiplications, recorded_pass
from explorer.analysis.circuit_metrics import LOSS, outcome_of
from explorer.analysis.information_flow import cached_route, is_computable
from explorer.analysis.logit_attribution import embedded_terms, positions_read
from explorer.analysis.output_change import has_words
from explorer.analysis.rollout import half_residual_layers, mean_weights, rollout
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import PassShape, pass_size
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of, record, segments_of
from explorer.system.cooperative import Report
from models.gradients import gradients
from models.interventions import Replace

ATTENTION, ROLLOUT, IMPORTANCE = "attention", "rollout", "importance"
GRADIENT, INTEGRATED = "gradient × input", "integrated gradients"
METHODS, STEPS, DRAWS, MOST_POINTS = 5, 64, 8, 12
BYTES_HELD = 64_000_000
"""The most memory for the points of one batch."""


class AttributionError(ValueError):
    """Why an answer is not attributed to tokens, in one sentence."""


@dataclass(frozen=True, eq=False)
class ChosenAnswer:
    """An option of the output at a position of the last stack.

    `deletable` are the places in the first stack of the tokens that can be deleted, in order.
    """

    opened: OpenModel
    forward: ForwardPass
    position: int
    option: int
    deletable: tuple[int, ...]

    @property
    def stack(self) -> str:
        return self.opened.config.stacks[0]

    @property
    def embeddings(self) -> tuple[Tensor, Tensor]:
        """The embeddings of the text, (t, d), and those with all deletable tokens deleted."""
        stack: Any = getattr(self.opened.model, self.stack)
        with torch.no_grad():
            everywhere = torch.arange(len(self.forward.tokens))
            embedding = embedded_terms(self.forward, self.stack, everywhere)["token"]
            baseline = embedding.clone()
            baseline[[*self.deletable]] = stack.embedding.weight.mean(0) * stack.embedding_scale
        return embedding, baseline

    def inputs(self, points: Tensor) -> tuple[list[Any], dict[str, Any]]:
        """What a pass reads for these embeddings (b, t, d): tokens of each stack, and how."""
        at, sides = self.position, (self.forward.source, self.forward.target)
        read_at = slice(at, at + 1) if has_words(self.opened.config) else slice(None)
        edits = [Replace(f"{self.stack}.embed", points)]
        stacks = [[side] * len(points) for side in sides if side]
        return stacks, {"read_at": read_at, "edits": edits}

    def log_probability(self, output: Tensor) -> Tensor:
        """ln p of the option, (b,), from what a pass gives for these inputs."""
        logits = output[:, 0] if output.dim() == 3 else output
        return -outcome_of(self.opened.config, LOSS, self.option, 0, logits)(logits)

    def batched(self, of: Callable[[slice], Tensor], count: int, report: Report) -> Tensor:
        """The results of all batches of `count` passes, joined."""
        lengths = [len(side) for side in (self.forward.source, self.forward.target) if side]
        shape = PassShape(lengths[0], sum(lengths[1:]), leaves="graph")
        together = max(1, BYTES_HELD // pass_size(self.opened.config, shape).peak)
        results = []
        for first in range(0, count, together):
            results.append(of(slice(first, first + together)))
            report(min(1.0, (first + together) / count))
        return torch.cat(results)


def keeps_first(forward: ForwardPass) -> bool:
    """Whether the first token stays: a decoder reads a text that begins with no special token.

    Heads that find nothing attend to it then, so that without it every answer changes. Source:
    Efficient Streaming Language Models with Attention Sinks (Xiao et al. 2024), section 3.1.
    """
    return forward.config.kind == "decoder" and not forward.tokens[0].special


def chosen_answer(opened: OpenModel, forward: ForwardPass, place: int, option: int) -> ChosenAnswer:
    """The answer to attribute; AttributionError where there is none."""
    config = opened.config
    if config.score_function == "none" or config.head == "none":
        raise AttributionError(
            "This model gives no probabilities, so no deletion curve can be drawn: choose a model "
            "that predicts tokens or classes."
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
    return ChosenAnswer(opened, forward, place, option, deletable)


def attention_shares(answer: ChosenAnswer) -> dict[str, Tensor]:
    """Attention and rollout of every token, (t,), for the position that the answer is read from.

    Attention is the row of the last layer's mean weights over the heads; where a classifier reads
    several positions, the mean of their rows. In an encoder-decoder it is the row of the last
    cross-attention, and rollout is that row times the rollout of the encoder.
    """
    forward, place = answer.forward, answer.position
    part, last = forward.parts[0], forward.parts[-1]
    rolled = rollout(half_residual_layers(forward, part.name, part.layers))
    weights = mean_weights(forward, last.name, last.layers - 1)
    if last.name != part.name:
        return {ATTENTION: weights[place], ROLLOUT: weights[place] @ rolled}
    places, shares = positions_read(forward, place)
    read = rolled.new_zeros(len(rolled))
    read[places] = shares[:, 0].to(read)
    return {ATTENTION: read @ weights, ROLLOUT: read @ rolled}


def _gradient(answer: ChosenAnswer, points: Tensor) -> Tensor:
    """∂ ln p / ∂ embedding at these points (b, t, d), of the same shape."""
    site, (stacks, how) = f"{answer.stack}.embed", answer.inputs(points)
    return gradients(
        answer.opened.model,
        *map(ids_of, stacks),
        of=lambda output: answer.log_probability(output).sum(),
        sites=[site],
        segments=segments_of(answer.opened, stacks[0]),
        **how,
    ).gradients[site]


def gradient_times_input(answer: ChosenAnswer) -> Tensor:
    """(∂ ln p / ∂ embedding) · embedding of every token, (t,). A forward and a backward pass."""
    embedding, _ = answer.embeddings
    return (_gradient(answer, embedding[None])[0] * embedding).sum(-1)


def integrated_gradients(
    answer: ChosenAnswer, steps: int = STEPS, report: Report = lambda done: None
) -> Tensor:
    """The mean gradient between baseline and embedding, times their difference, (t,).

    The gradients are those at the middles of `steps` equal parts of the line. By completeness they
    would sum to the change of ln p if there were infinitely many. Costs a forward and a backward
    pass for each, in batches of bounded memory.
    """
    embedding, baseline = answer.embeddings
    shares = ((torch.arange(steps) + 0.5) / steps)[:, None, None].to(embedding)

    def summed(some: slice) -> Tensor:
        return _gradient(answer, torch.lerp(baseline, embedding, shares[some])).sum(0, keepdim=True)

    mean = answer.batched(summed, steps, report).sum(0) / steps
    return (mean * (embedding - baseline)).sum(-1)


@dataclass(frozen=True, eq=False)
class TokenAttribution:
    """The numbers (t,) of every method, and their deletion curves.

    `curves` (points,) have the answer's probability after `counts` tokens are deleted in the order
    of a method, `random` (draws, points) in random orders. `change` is that of ln p from the text
    with everything deleted to the text.
    """

    values: dict[str, Tensor]
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

    @property
    def error(self) -> float:
        """Of completeness: |Σ of integrated gradients − change| ÷ |change|."""
        total, change = float(self.values[INTEGRATED].double().sum()), self.change
        return abs(total - change) / abs(change) if change else math.inf


def points_of(answer: ChosenAnswer) -> tuple[int, ...]:
    """The numbers of deleted tokens on a curve, from 0 to all; of many, some evenly chosen."""
    points = min(count := len(answer.deletable), MOST_POINTS)
    return tuple(round(at * count / points) for at in range(points + 1))


def deletion_curves(
    answer: ChosenAnswer, values: dict[str, Tensor], report: Report = lambda done: None
) -> TokenAttribution:
    """The deletion curve of every method, its largest value first, and of random orders.

    The sign counts: a token that speaks against the answer comes last. Costs
    (methods + draws) × points passes, in batches.
    """
    generator, places = torch.Generator().manual_seed(0), torch.tensor(answer.deletable)
    orders = [places[of[places].argsort(descending=True, stable=True)] for of in values.values()]
    orders += [places[torch.randperm(len(places), generator=generator)] for _ in range(DRAWS)]
    counts, (embedding, baseline) = points_of(answer), answer.embeddings
    deleted = [order[:count] for order in orders for count in counts]

    def log_probabilities(some: slice) -> Tensor:
        points = embedding.repeat(len(deleted[some]), 1, 1)
        for point, gone in zip(points, deleted[some], strict=True):
            point[gone] = baseline[gone]
        stacks, how = answer.inputs(points)
        return answer.log_probability(record(answer.opened, *stacks, sites=(), **how).output)

    logs = answer.batched(log_probabilities, len(deleted), report).view(len(orders), -1)
    by_method = dict(zip(values, logs.exp(), strict=False))
    change = float(logs[0, 0] - logs[0, -1])
    return TokenAttribution(values, counts, by_method, logs[len(values) :].exp(), change)


def first_attributions(answer: ChosenAnswer) -> dict[str, Tensor]:
    """Those of one forward and one backward pass. Too long a text has no importance."""
    values = attention_shares(answer)
    if is_computable(answer.forward):
        at = answer.position if has_words(answer.opened.config) else 0
        route = cached_route(answer.opened, answer.forward, at)
        values[IMPORTANCE] = route.streams[answer.stack][0]
    return values | {GRADIENT: gradient_times_input(answer)}


def attribute_tokens(
    answer: ChosenAnswer, steps: int = STEPS, report: Report = lambda done: None
) -> TokenAttribution:
    """Every method and every deletion curve."""
    values = first_attributions(answer)
    values[INTEGRATED] = integrated_gradients(answer, steps, lambda done: report(done / 2))
    return deletion_curves(answer, values, lambda done: report((1 + done) / 2))


def cost_of(answer: ChosenAnswer) -> int:
    """Multiplications of all passes; a backward pass counts as two."""
    base = recorded_pass(EditedPass(answer.forward), answer.position)
    passes = 3 * (STEPS + 1) + (METHODS + DRAWS) * len(points_of(answer))
    return passes * multiplications(base, f"{answer.stack}.self_attn", 0)

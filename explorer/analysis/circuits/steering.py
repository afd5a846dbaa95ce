"""The effect of a direction on the metric of a question: over strengths, layers and heads.

Source: Steering Llama 2 via Contrastive Activation Addition (Panickssery et al. 2024), section 4.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from explorer.analysis.batched_passes import RecordedPass, multiplications, run_layers
from explorer.analysis.circuits.text_pairs import Question
from explorer.catalog.opened_model import OpenModel
from explorer.inference.continuation import prompt_of
from explorer.inference.core_edits import NotApplicableError, core_edit, steering_direction
from explorer.inference.forward_pass import run_text
from explorer.inference.generation_limits import MAX_STEERED
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import cached
from explorer.interventions.edits import Steer
from models.generation import generate
from models.interventions import Add, Edit
from models.trace import RecordingTap

UPWARDS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
STRENGTHS = (*(-strength for strength in reversed(UPWARDS)), 0.0, *UPWARDS)
"""Closer together where the metric changes most."""


@dataclass(frozen=True, eq=False)
class SteeredValues:
    """The metric of the clean and of the corrupted texts, each (pairs, directions)."""

    clean: Tensor
    corrupted: Tensor


def steering_of(
    question: Question, part: str, layer: int, head: int | None, strength: float
) -> Steer:
    """From the corrupted to the clean texts, or the output of a head for the first clean text."""
    pairs = [pair.texts for pair in question.pairs]
    if head is not None:
        return Steer(part, layer, head, strength, (pairs[0].clean,))
    texts = (text for pair in pairs for text in (pair.clean, pair.corrupted))
    return Steer(_own(part), layer, None, strength, tuple(texts))


def over_strengths(steer: Steer) -> list[Steer]:
    return [replace(steer, strength=strength) for strength in STRENGTHS]


def over_places(opened: OpenModel, steer: Steer, layers: int, heads: int) -> list[Steer]:
    """The direction of the same texts after every layer, or of every head of the layer.

    Layers and heads without a direction are left out.
    """
    if steer.head is None:
        steers = [replace(steer, layer=layer) for layer in range(layers)]
    else:
        steers = [replace(steer, head=head) for head in range(heads)]
    return [steer for steer in steers if _has_direction(opened, steer)]


def steering_cost(opened: OpenModel, question: Question, steers: Sequence[Steer]) -> int:
    """About how many multiplications `steered_values` takes."""
    return sum(
        multiplications(base, _own(steer.part), steer.layer)
        for _, base in _bases(opened, question)
        for steer in steers
    )


def steered_values(
    opened: OpenModel,
    question: Question,
    steers: Sequence[Steer],
    report: Callable[[float], None] = lambda done: None,
) -> SteeredValues:
    """The metric with each direction added alone, as a row of a batch.

    `steers` are in the order of their layers, equally many in each. The layers up to theirs do not
    run again. NotApplicableError where one has no direction.
    """
    part = _own(steers[0].part)
    added = {
        layer: torch.stack([steer.strength * steering_direction(opened, steer) for steer in group])
        for layer, group in groupby(steers, lambda steer: steer.layer)
    }

    def edit_of(layer: int, rows: range) -> Edit:
        site = f"{part.split('.')[0]}.{layer}.resid_post"
        return Add(site, added[layer][rows.start : rows.stop, None])

    bases, metrics = list(_bases(opened, question)), []
    for done, (outcome, base) in enumerate(bases):
        logits = []
        for of_layer in run_layers(base, part, list(added), len(steers) // len(added), edit_of):
            logits.append(of_layer)
            report((done + len(logits) / len(added)) / len(bases))
        metrics.append(outcome(torch.cat(logits)))
    return SteeredValues(torch.stack(metrics[::2]), torch.stack(metrics[1::2]))


def _has_direction(opened: OpenModel, steer: Steer) -> bool:
    try:
        return bool(len(steering_direction(opened, steer)))
    except NotApplicableError:
        return False


def _own(part: str) -> str:
    """The self-attention of the stack of a part."""
    return f"{part.split('.')[0]}.self_attn"


def _bases(
    opened: OpenModel, question: Question
) -> Iterator[tuple[Callable[[Tensor], Tensor], RecordedPass]]:
    """The recorded passes of the clean and the corrupted text of each pair, with the metric."""
    for pair in question.pairs:
        clean, corrupted = (
            (pair.texts.clean, pair.place),
            (pair.texts.corrupted, pair.corrupted_place),
        )
        for text, place in (clean, corrupted):
            passed = run_text(opened, text)
            yield pair.outcome, RecordedPass(passed.trace, [ids_of([passed.tokens])], place)


def steered_text(
    opened: OpenModel,
    prompt: str,
    steer: Steer | None,
    report: Callable[[float], None] = lambda done: None,
) -> str:
    """Greedy decoding after the prompt, up to `MAX_STEERED` tokens or an end; cached.

    The direction is added at every position of the prompt and at every generated token.
    ForwardPassError for a model that does not generate, NotApplicableError where there is no
    such direction. A step costs the pass of one token.
    """

    def write() -> str:
        start = prompt_of(opened, prompt)
        edits = [] if steer is None else [core_edit(opened, run_text(opened, prompt), steer)]
        most = min(MAX_STEERED, start.room)
        ids = []
        steps = generate(
            opened.model, start.ids, max_length=most, greedy=True, tap=RecordingTap((), edits)
        )
        for step in steps:
            ids.append(int(step.ids[0]))
            report(len(ids) / most)
        return opened.tokenizer.decode(ids)

    return cached(opened, ("steered text", prompt, steer), write)

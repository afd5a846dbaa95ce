"""Sentences that interpret numbers, each with a case in which it must not be said."""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from explorer.analysis import diagnostics
from explorer.analysis.causal_tracing import TracedGrid
from explorer.analysis.circuit_faithfulness import CircuitPoint, smallest_in_words
from explorer.analysis.circuits.head_scores import HeadScores, _ranked, mover_clause, name_clause
from explorer.analysis.head_metrics import HeadMetrics
from explorer.analysis.weight_statistics import summarized
from explorer.analysis.wiring import Place
from explorer.charts.figure_data import OfflinePicture
from explorer.export.kept_view import KeptView
from explorer.export.session_page import refusal
from explorer.inference.sampling_stages import sampling_stages
from explorer.runs.metrics import Best
from explorer.runs.run import Run
from explorer.runs.spec import DONE, RunNotes, Status
from explorer.views.circuits.patching_view import paths_in_words, tracing_in_words
from explorer.views.generation.token_by_token import cut_summary, how_chosen
from explorer.views.inside_training.landscape_view import lowest_in_words
from explorer.views.inside_training.one_update_view import losses_in_words, moves_in_words
from explorer.views.runs.races import leader_words
from explorer.views.runs.run_rows import RunRow
from models.sampling import Sampling

QUESTION: Any = SimpleNamespace(metric="Value", error=0.0)


def points(**shares: float) -> list[CircuitPoint]:
    """Circuits of e1, e2, … edges with these shares."""
    return [CircuitPoint(int(name[1:]), share, *[0.0] * 4) for name, share in shares.items()]


def traced(shares: list[list[float]], clean: float = 1.0) -> str:
    grid = TracedGrid(Tensor(shares), clean, 0.0, denoising=True)
    return tracing_in_words(grid, QUESTION, ["a", "b"], (0, 0), "Residual stream")


def paths(*values: float) -> str:
    ends = [Place("logits")] * len(values)
    return paths_in_words(QUESTION, ends, [f"e{at}" for at in range(9)], values)


def leader(*best: tuple[float, int] | None) -> str:
    status = Status(DONE, measure="accuracy", measured_at=9)
    names = [f"r{at}" for at in range(len(best))]
    runs = zip(names, best, strict=True)
    rows = [
        RunRow(Run(Path(name)), RunNotes(), 0, status=status, best=value and Best(*value))
        for name, value in runs
    ]
    return leader_words(rows, dict(zip(names, names, strict=True)))


def chosen(logits: list[float], *how: Any) -> str:
    sampling = Sampling(*how)
    stages = sampling_stages(Tensor(logits), sampling)
    return f"{how_chosen(stages, sampling, 0, '1')} {cut_summary(stages, sampling)}"


def lowest(grid: list[float], on_path: list[float]) -> str:
    return lowest_in_words(Tensor(grid), Tensor(on_path))


def losses(*of: float) -> str:
    return losses_in_words(Tensor(of))


def trained(*widths: int, bias: bool = True) -> str:
    """Of a negative width all weights are zero."""
    model = nn.Sequential(*(nn.Linear(abs(width), abs(width), bias) for width in widths))
    for layer, width in zip(model, widths, strict=True):
        nn.init.constant_(layer.get_parameter("weight"), 0.0) if width < 0 else None
    return str(diagnostics.training_findings(model, [*summarized(model)]))


def uniform(*spread: list[float]) -> str:
    heads = HeadMetrics("decoder.self_attn", {"spread": Tensor(spread)}, 12, 0, {})
    return str(diagnostics.attention_findings([heads]))


def too_large(*sizes: int) -> str:
    pictures = [[OfflinePicture("", bytes(size))] for size in sizes]
    return refusal([KeptView(f"v{at}", "", pictures=of) for at, of in enumerate(pictures)])


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], str, str]] = [
    (mover_clause, (1.13, 0.6), "name mover: it raises the logit .* by 1.13", "lowers|negative"),
    (mover_clause, (-2.7, 0.6), "^negative name mover: it lowers .* 2.70; .* needs 0.5", "raises"),
    (mover_clause, (-2.7, 0.4), "^$", "mover"),
    (mover_clause, (0.4, 0.9), "^$", "mover"),
    (mover_clause, (math.nan, math.nan), "^$", "mover"),
    (name_clause, ("induction head", "weight", math.nan), "^$", "head"),
    (name_clause, ("copying head", "share", 0.6, 0.8), "^$", "head"),
    (name_clause, ("copying head", "share", 0.9, 0.8), "0.900; the name needs 0.800", "0.500"),
    (
        smallest_in_words,
        (3, points(e1=0.2, e2=0.8, e5=0.95, e9=1.0)),
        "restores 90 % of the difference has 3 of 9 edges .33.3 %.*; all larger ones tried",
        "About|less",
    ),
    (
        smallest_in_words,
        (3, points(e1=0.2, e5=0.95, e7=0.4, e8=0.6, e9=1.0)),
        "tried, the smallest .* has 3 of 9 .*; of the larger ones, that of 8 edges restores less",
        "all larger",
    ),
    (smallest_in_words, (None, points(e1=0.2, e9=math.nan)), "None of these", "smallest"),
    (smallest_in_words, (9, points(e1=0.2, e9=1.0)), "has 9 of 9", "larger"),
    (traced, ([[0.1, 0.2]],), "largest share .* layer 0, “b” .1.: 0.200 of it", "most|much"),
    (traced, ([[0.5], [0.5]],), "layer 0, “a” .0., and as much at 1 more: 0.500", "most of"),
    (traced, ([[-2.0, 0.0]],), "at no layer and token .* above 0. Chosen", "comes back at|between"),
    (traced, ([[1.0]], 0.0), "there is no difference", "largest|of it|no value"),
    (traced, ([[math.nan, 0.3]],), "at layer 0, “b” .1.: 0.300", "as much"),
    (paths, (0.5, -0.5, 0.1), "Strongest of 3 edges: e0, .*, and 1 more are as strong", "only"),
    (paths, (0.0, 0.0), "^None of 2 edges changes", "Strongest|only"),
    (paths, (math.nan, 0.2), "^The only edge with a finite value: e1, .* e0: no", "Strong"),
    (paths, (math.nan,), "^None of 1 edges", "Strongest|only"),
    (leader, ((0.9, 5), (0.9, 7), (0.8, 1)), "2 runs .*r0.* fewest steps, 5", "leads|best"),
    (leader, ((0.9, 5), (0.9, 5), (0.9, 7)), "3 runs .*; 2 of them .* fewest", "r0|each t"),
    (leader, ((0.9, 5), (0.9, 5)), "2 runs have reached accuracy 0.900; each took 5", "fewest|r0"),
    (leader, ((0.9, 5),), "r0.* is the only run: accuracy 0.900", "best|leads"),
    (leader, ((0.9, 5), (0.8, 5), None), "r0.* is best of 2 measured runs", "leads"),
    (chosen, ([2.0, 2.0, 1.0], 0.0), "^the first of the 2 likeliest", "^the likeliest"),
    (chosen, ([2.0, 1.0], 1.0, 1), "^the only one that is left. .*0.269", "sampled with"),
    (chosen, ([0.1] * 49, 1.0, 49), "top-k cuts 0 tokens .probability 0.", "−"),
    (lowest, ([3.0, 2.0], [2.5]), "^The lowest is 2.00 .*label.$", "snapshot"),
    (lowest, ([3.0, 2.0], [1.0]), "2.00 .* between the points a snapshot has 1.00", "finite"),
    (lowest, ([math.nan, 2.0], []), "^1 of the losses .* lowest other is 2.00", "The lowest"),
    (lowest, ([math.inf], []), "^No loss is finite", "lowest"),
    (losses, (1.0, 3.0), "mean, 2.00 nats, .* The largest is 3.00 nats.$", "equal"),
    (losses, (1.0, 3.0, 3.0), "largest is 3.00 nats, of 2 labels", "equal"),
    (losses, (3.0, 3.0), "All are equal", "largest"),
    (losses, (3.0,), "^the only one, 3.00 nats", "largest|mean"),
    (losses, (math.inf, 3.0), "^1 of 2 is not finite", "largest|diverged"),
    (moves_in_words, (0.5,), "^50.0 % of .* The others", "No weight"),
    (moves_in_words, (1.0,), "^100 % of the weights that have a gradient and move", "others"),
    (moves_in_words, (math.nan,), "^No weight", "%"),
    (partial(trained, bias=False), (16,), "no norm gain and no bias, and", "changed"),
    (trained, (4,), "Training not checked", "fine|0 of 0|all 0"),
    (trained, (16, -16), "all 1 sampled", "could not have"),
    (uniform, ([1.0, math.nan],), "each of the 1 heads that have an entropy, of 2,", "every head"),
    (uniform, ([math.nan] * 2, [0.2, 0.3]), "0 of 2 heads attend", "layer 0"),
    (too_large, (9_000, 8_000), "The largest is “v0” with", "only|No view"),
    (too_large, (9_000, 9_000), "No view is larger than “v0”", "The largest"),
    (too_large, (9_000,), "“v0” is the only view", "largest|remove it first"),
]


@pytest.mark.parametrize(("words", "of", "said", "not_said"), CASES)
def test_a_sentence_says_what_was_measured(
    words: Callable[..., Any], of: Any, said: str, not_said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSION_FILE_BYTES", "1000")
    sentence = " ".join(str(words(*of)).split())
    assert re.search(said, sentence), sentence
    assert not re.search(not_said, sentence), sentence


def test_heads_without_a_value_have_no_rank_and_are_not_counted() -> None:
    values = torch.tensor([[0.5, math.nan], [0.9, 0.1]])
    ranked = _ranked("", values, 0, 0, "")
    assert (ranked.place, ranked.heads) == (2, 3)
    assert _ranked("", values, 0, 1, "").place is None
    assert HeadScores((), (), ()).names_in_words.startswith("No name: none of its scores")

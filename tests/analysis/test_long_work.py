"""All work that may take long ends where its reader has gone: it takes a step now and then."""

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from explorer.analysis.ablation_and_patching import ablate_every_head, exact_edges
from explorer.analysis.attribution_patching import attribute
from explorer.analysis.batch_edits import AblateHeads
from explorer.analysis.batched_passes import RecordedPass
from explorer.analysis.causal_tracing import RESIDUAL, Tracing
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.circuits.top_lines import activations_by_batch, tokenize_lines
from explorer.analysis.default_head import default_head
from explorer.analysis.diagnostics import training_findings
from explorer.analysis.embedding_space import nearest_tokens, principal_axes, token_paths
from explorer.analysis.forward_pass.pass_values import record_block, record_pass
from explorer.analysis.gradient_noise import gradients, noise_scale
from explorer.analysis.head_metrics import metrics_by_layer
from explorer.analysis.head_programs import measure_programs, read_lines
from explorer.analysis.head_similarity import rows_of_heads
from explorer.analysis.information_flow import information_flow
from explorer.analysis.logit_attribution import contributions
from explorer.analysis.logit_lens import lens_logits
from explorer.analysis.loss_landscape import training_plane
from explorer.analysis.map_faithfulness import faithfulness
from explorer.analysis.one_update import take_apart
from explorer.analysis.rollout import flow_to, half_residual_layers
from explorer.analysis.score_sources import score_sources
from explorer.analysis.singular_values import singular_values_of
from explorer.analysis.teacher_forcing import teacher_forcing
from explorer.analysis.token_attribution import attribute_tokens, chosen_answer
from explorer.analysis.weight_change import weight_changes
from explorer.analysis.weight_distribution import weight_deciles
from explorer.analysis.weight_statistics import summarized
from explorer.app.address_parameters import of_pages
from explorer.catalog import opened_model, pass_budget
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer, TooLargeError
from explorer.charts.figure_data import FigureData, OfflineView
from explorer.export.kept_view import KeptView
from explorer.export.session_lesson import session_toml
from explorer.export.session_page import session_html
from explorer.export.session_slides import session_pdf
from explorer.inference.continuation import continue_from, sample_tokens
from explorer.inference.forward_pass import ForwardPass, rerun, run_batch_uncached, run_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import cached
from explorer.lessons.lesson_file import lesson_from
from explorer.runs.retraining import ModelInTraining, train_on
from explorer.runs.run_size import expected_speed
from explorer.system import cooperative, limits
from explorer.system.cooperative import interruptible
from explorer.tasks import TASKS
from explorer.tasks.task_list import task_of
from explorer.tasks.task_metrics import nats_per_token, value_of
from explorer.text.bpe_training import train_merges
from explorer.text.unigram import MAX_UNIGRAM_TEXT, train_unigram
from explorer.views.museum.document_systems import SYSTEMS, make_system
from explorer.views.museum.paired_training import train_on_random_labels, train_softmax_twice
from models import Transformer, TransformerConfig, save_checkpoint
from models.beam_search import beam_steps
from models.config import TrainConfig
from models.generation import generate
from models.sampling import Sampling
from models.training import Batch, TrainState, train
from tests.inference.test_cooperative import Leaves, Left
from tests.source import ROOT
from tests.tiny import tiny_spec

PART = "decoder.self_attn"
EDIT = AblateHeads("decoder.0.self_attn.head_out", (0,))
Work = Callable[[OpenModel, ForwardPass], object]


def base(forward: ForwardPass) -> RecordedPass:
    return RecordedPass(forward.trace, [ids_of([forward.target])], len(forward.target) - 1)


def ids(forward: ForwardPass) -> torch.Tensor:
    return ids_of([forward.target])


def contrast(forward: ForwardPass) -> Contrast:
    """The text with its tokens the other way round."""
    given = ids(forward)
    return Contrast(forward.trace.model, given, given.flip(1), 3, lambda logits: logits[:, 0])


WORK: dict[str, Work] = {
    "a pass": lambda opened, _: run_batch_uncached(opened, ("the hat",)),
    "default head": lambda opened, _: default_head(opened),
    "ablation": lambda _, forward: [*ablate_every_head(base(forward), PART, 2)],
    "causal tracing": lambda _, forward: [*Tracing(contrast(forward), RESIDUAL, True).columns()],
    "paths": lambda _, forward: [*exact_edges(contrast(forward), [(9, 0)])],
    "faithfulness": lambda _, forward: faithfulness(base(forward), PART, 0, 0),
    "pass values": lambda _, forward: record_pass(forward, ("*.out",)),
    "one block": lambda _, forward: record_block(forward, "decoder", 1),
    "metrics": lambda _, forward: [*metrics_by_layer(forward, PART)],
    "similarity": lambda _, forward: [*rows_of_heads(forward, PART, (0,))],
    "flow of information": lambda _, forward: information_flow(forward),
    "attribution": lambda _, forward: contributions(forward, 1, 5),
    "logit lens": lambda _, forward: lens_logits(forward.trace, 0),
    "maximum flow": lambda _, forward: [
        *flow_to([*half_residual_layers(forward, PART, 2)], len(forward.target) - 1)
    ],
    "teacher forcing": lambda opened, run: teacher_forcing(opened.model, None, ids(run)[0], 1),
    "token paths": lambda _, forward: token_paths(forward, "decoder", (0, 1)),
    "diagnostics": lambda opened, _: training_findings(opened.model, [*summarized(opened.model)]),
    "generation": lambda opened, forward: [*generate(opened.model, ids(forward))],
    "sampling": lambda opened, _: next(sample_tokens(opened, "the cat", (5,), Sampling(), 1)),
    "a branch": lambda opened, _: continue_from(opened, "the cat", (5, 6, 7)),
    "an edited pass": lambda opened, forward: rerun(opened, forward, (), forward.target, [EDIT]),
    "beam search": lambda opened, forward: [*beam_steps(opened.model, ids(forward))],
}


RUNS_THE_CORE = (
    *("a pass", "an edited pass", "pass values", "one block", "a branch"),
    *("causal tracing", "paths"),
    *("ablation", "faithfulness", "teacher forcing", "generation", "sampling", "beam search"),
)


class LeavesLater(Leaves):
    """A run whose reader leaves once it has gone on for `enough` seconds; the longest of its work
    between two looks is `longest`. Seconds of processor time, so other work does not count.
    """

    def __init__(self, enough: float) -> None:
        self.longest, self._enough = 0.0, enough
        self._began = self._looked = thread_time()

    def look(self) -> None:
        self.longest = max(self.longest, thread_time() - self._looked)
        self._looked = thread_time()

    def step(self) -> None:
        self.look()
        if self._looked - self._began >= self._enough:
            raise Left

    check_cancelled = step


@pytest.mark.parametrize("name", WORK)
def test_it_ends_when_its_reader_has_gone(name: str, letters: OpenModel) -> None:
    forward = run_text(letters, "the cat and the hat")
    with pytest.raises(Left), cooperative.run_in_thread(LeavesLater(0)):
        WORK[name](letters, forward)
    assert torch.is_grad_enabled(), "it leaves no mode behind"
    WORK[name](letters, forward)  # the same for whoever stays


@pytest.mark.parametrize("name", RUNS_THE_CORE)
def test_it_is_refused_where_there_is_no_room_for_it(
    name: str, letters: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = run_text(letters, "the cat and the hat")
    run_text(letters, "the cat")
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "available_memory", lambda: 1_000)
    with pytest.raises(TooLargeError, match="more memory than is free"):
        WORK[name](letters, forward)
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "1_000")
    with pytest.raises(TooLargeError, match=r"forward pass would need .* the limit is 0\.001 MB"):
        WORK[name](letters, forward)


MOST_SECONDS, ENOUGH = 2.0, 0.1
"""Of processor time: between two looks, and after which the reader leaves at the next look."""
SIZES: dict[str, Any] = {"d_model": 512, "n_heads": 8, "d_ff": 2048, "vocab_size": 269}


@cache
def large(seed: int = 0) -> Transformer:
    """The largest that a stranger may fine-tune."""
    config = TransformerConfig(**SIZES, kind="decoder", n_layers=6, max_len=2048)
    return Transformer(config, seed=seed)


@cache
def loaded() -> None:
    """Modules are loaded once: the optimizers and the drawing of slides take seconds of it."""
    model = Transformer(tiny_spec().model)
    next(train(model, lambda _: TASKS["reverse"].batch(0, ONE_STEP), ONE_STEP))
    session_pdf("A talk", [KeptView("A view", "/")])


def rows_of(count: int, tokens: int) -> Batch:
    ids = torch.arange(count * tokens).view(count, tokens) % 269
    return Batch((ids,), ids)


def with_steps(work: Callable[[], object]) -> None:
    with pass_budget.steps_between_layers(large()):
        work()


def fresh(optimizer: str = "adamw") -> TrainState:
    return TrainState.fresh(large(), ONE_STEP.replace(optimizer=optimizer))


def updated(rows: Batch, state: TrainState) -> None:
    with pass_budget.steps_between_layers(large(), state.optimizer):
        next(train(large(), lambda _: rows, ONE_STEP, state))


@cache
def widest() -> Transformer:
    """The largest that a stranger may open, 1 GB; its weights are never written."""
    sizes = large().config.replace(d_model=4000, n_heads=1, d_ff=0, vocab_size=45_000, n_layers=1)
    with torch.device("meta"):
        model = Transformer(sizes.replace(positions="rotary", tie_embeddings=True))
    return model.to_empty(device="cpu")


def trained_again(*_: object) -> list[int]:
    run, task = Mock(changes=list), Mock(batch=lambda *_, **__: TUNED)
    spec = replace(tiny_spec(), training=ONE_STEP)
    return [*train_on(ModelInTraining(large(), fresh(), ONE_STEP), run, task, spec, 1)]


def opened_large(opened: OpenModel, root: Path) -> object:
    words = (opened.folder / "tokenizer.json").read_text()
    save_checkpoint(root / "large", large(), tokenizer=words)
    return opened_model.open_checkpoint(root / "large", "large")


def wide(opened: OpenModel) -> OpenModel:
    """With a large model that reads its letters."""
    return replace(opened, model=bounded(), config=large().config)


def described(opened: OpenModel, texts: Sequence[str]) -> object:
    return measure_programs(opened, read_lines(opened, texts))


def attributed(opened: OpenModel, text: str) -> object:
    return attribute_tokens(chosen_answer(opened, run_text(opened, text), 129, 0))


def bounded() -> BoundedTransformer:
    return BoundedTransformer(large())


def long_contrast() -> Contrast:
    ids = rows_of(1, 1024).labels
    return Contrast(bounded(), ids, ids.flip(1), 1023, lambda logits: logits[:, 0])


def views(count: int) -> list[KeptView]:
    """A session of that many, together as large as one may be."""
    data = b"x" * (limits.SESSION_FILE_BYTES.public // count)
    labels = tuple(map(str, range(100)))
    figures = [FigureData(torch.rand(100, 100), labels, labels, "A head")] * 3
    part = OfflineView("view", "key", data, 100, None, "", "", "")
    return [KeptView("A view", "/", "n" * 500, {}, [part], figures) for _ in range(count)]


WORDS = "".join(f"{number} is {number * 7919 % 100_000}. " for number in range(40_000))
PAIRS = "source,target\n" + "".join(f"cat {n} dog,dog {n * 7919 % 9973}\n" for n in range(40_000))
LINES = tuple(f"{n:4}" + "the cat " * 62 for n in range(1000))
TUNED, ONE_STEP, SYSTEM = rows_of(8, 256), TrainConfig(steps=1, batch_size=8), SYSTEMS[0]
SNAPSHOTS = [{"weights": torch.full((1000, 2000), float(at))} for at in range(9)]
LARGEST: dict[str, list[Callable[[OpenModel, Path], object]]] = {
    "estimate of a training's speed": [
        lambda *_: expected_speed(TASKS["reverse"], tiny_spec(batch_size=4096, accumulation=4096)),
        lambda *_: expected_speed(TASKS["reverse"], tiny_spec(batch_size=1800)),
    ],
    "an update of a training, a race, a sweep or a fine-tuning": [
        lambda *_: updated(TUNED, fresh()),
        lambda *_: updated(rows_of(1, 1), fresh("muon")),
    ],
    "its measurement of held-out rows": [
        lambda *_: with_steps(lambda: value_of(nats_per_token, large(), rows_of(500, 512)))
    ],
    "the data of a training: a text of your own as tokens": [
        lambda *_: task_of("subwords", WORDS[: limits.CORPUS_CHARACTERS.public]),
        lambda *_: task_of("pairs", PAIRS[: limits.CORPUS_CHARACTERS.public].rpartition("\n")[0]),
    ],
    "one update taken apart, training again": [
        lambda opened, _: cached(
            opened, 0, lambda: take_apart(large(), lambda _: TUNED, ONE_STEP, fresh())
        ),
        trained_again,
    ],
    "loss landscape, gradient noise, training history": [
        lambda opened, _: cached(opened, 1, lambda: training_plane(SNAPSHOTS)),
        lambda opened, _: cached(
            opened, 2, lambda: noise_scale([*gradients(large(), lambda _: TUNED, 8)], 8)
        ),
    ],
    "circuits, all edges, sweeps of a direction, ablations": [
        lambda *_: [*exact_edges(long_contrast(), [(9, 0)])],
        lambda *_: attribute(long_contrast(), 5),
        lambda *_: [*Tracing(long_contrast(), RESIDUAL, True).columns()],
        lambda opened, _: [*ablate_every_head(base(run_text(wide(opened), LINES[0])), PART, 2)],
    ],
    "search for top lines": [
        lambda opened, _: tokenize_lines(opened, LINES),
        lambda opened, _: [
            *activations_by_batch(wide(opened), [opened.tokenizer.encode(LINES[0])] * 99, set())
        ],
    ],
    "programs, sources and weights of heads, an answer's tokens": [
        lambda opened, _: cached(opened, 5, lambda: described(wide(opened), LINES[:24])),
        lambda opened, _: cached(
            opened, 6, lambda: score_sources(run_text(wide(opened), LINES[0]), PART, 5, 0, 129, 1)
        ),
        lambda opened, _: cached(opened, 7, lambda: weight_deciles(wide(opened), PART, LINES[:9])),
        lambda opened, _: cached(opened, 8, lambda: attributed(wide(opened), LINES[0])),
    ],
    "embeddings: components, neighbours, paths": [
        lambda *_: principal_axes(torch.rand(60_000, 1024)),
        lambda *_: nearest_tokens(torch.rand(60_000, 1024), torch.rand(2, 1024), 3),
    ],
    "weights: statistics, singular values, changes": [
        lambda *_: [*summarized(large())],
        lambda opened, _: cached(opened, 3, lambda: weight_changes(large(), large(1))),
        lambda opened, _: cached(opened, 4, lambda: singular_values_of(torch.rand(1_600, 4_096))),
    ],
    "generating, beam search, branches": [
        lambda *_: [*generate(bounded(), rows_of(1, 1900).labels)],
        lambda *_: [*beam_steps(bounded(), rows_of(1, 1900).labels)],
        lambda opened, _: continue_from(wide(opened), LINES[0], (5, 6, 7)),
    ],
    "museum: “Open it untrained”": [lambda _, root: make_system(SYSTEM, root)],
    "museum: “Train both”": [
        lambda *_: [*interruptible(train_softmax_twice(TASKS["reverse"]))],
        lambda *_: [*interruptible(train_on_random_labels())],
    ],
    "opening a model, and a pass": [
        opened_large,
        lambda *_: BoundedTransformer(widest())(rows_of(1, 2048).labels),
    ],
    "training a tokenizer": [
        lambda *_: train_unigram(WORDS[:MAX_UNIGRAM_TEXT], 1_000),
        lambda *_: train_merges(WORDS[: limits.TOKENIZER_CHARACTERS.public], 1_000),
    ],
    "a session as slides": [
        lambda *_: session_pdf("A talk", views(40), turn=lambda: nullcontext([*interruptible([0])]))
    ],
    "a session as HTML or as a talk, opening a lesson": [
        lambda *_: session_html("A talk", views(40)),
        lambda *_: lesson_from(session_toml("A talk", views(40)), "talk.toml", of_pages()),
    ],
}


@pytest.mark.parametrize(
    ("row", "at"), [(row, at) for row in LARGEST for at in range(len(LARGEST[row]))]
)
@pytest.mark.parametrize("enough", [ENOUGH, pytest.param(20.0, marks=pytest.mark.thorough)])
def test_within_two_seconds_it_looks_up_however_large_it_is(
    row: str, at: int, enough: float, letters: OpenModel, tmp_path: Path
) -> None:
    """At the largest input that a public server allows; it is left on its way, or ends."""
    loaded()
    reader = LeavesLater(enough)
    with cooperative.run_in_thread(reader), suppress(Left):
        LARGEST[row][at](letters, tmp_path)
    reader.look()
    assert enough > ENOUGH or {path.name for path in tmp_path.iterdir()} <= {"large"}
    assert reader.longest < MOST_SECONDS, "it goes on for two seconds without a look"
    assert torch.is_grad_enabled(), "it leaves no mode behind"


ELSEWHERE = {"download of a model", "commands other than `train`, `resume` and `sweep`"}
"""Rows of processes that are ended from outside: tests of downloads and of the command line do."""


def test_every_row_of_the_table_is_tried() -> None:
    table = (ROOT / "docs" / "long_work.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \|", table, re.M)[1:]
    assert set(rows) == LARGEST.keys() | ELSEWHERE

"""All work that may take long ends where its reader has gone: it takes a step now and then."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from explorer.analysis.ablation_and_patching import ablate_every_head, exact_edges
from explorer.analysis.batch_edits import AblateHeads
from explorer.analysis.batched_passes import RecordedPass
from explorer.analysis.causal_tracing import RESIDUAL, Tracing
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.diagnostics import training_findings
from explorer.analysis.embedding_space import token_paths
from explorer.analysis.forward_pass.pass_values import record_block, record_pass
from explorer.analysis.head_metrics import metrics_by_layer
from explorer.analysis.head_similarity import rows_of_heads
from explorer.analysis.information_flow import information_flow
from explorer.analysis.logit_attribution import contributions
from explorer.analysis.logit_lens import lens_logits
from explorer.analysis.loss_landscape import training_plane
from explorer.analysis.map_faithfulness import faithfulness
from explorer.analysis.nearest_tokens import nearest_tokens
from explorer.analysis.principal_components import principal_axes
from explorer.analysis.rollout import flow_to, half_residual_layers
from explorer.analysis.teacher_forcing import teacher_forcing
from explorer.analysis.weight_change import weight_changes
from explorer.analysis.weight_statistics import summarized
from explorer.catalog import opened_model, pass_budget
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer, TooLargeError
from explorer.inference.continuation import continue_from, sample_tokens
from explorer.inference.default_head import default_head
from explorer.inference.forward_pass import ForwardPass, rerun, run_batch_uncached, run_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import cached
from explorer.system import cooperative
from explorer.tasks.task_metrics import nats_per_token, value_of
from explorer.views.museum import document_systems
from models import Transformer, TransformerConfig
from models.beam_search import beam_steps
from models.config import TrainConfig
from models.generation import generate
from models.sampling import Sampling
from models.training import Batch, batch_loss, train
from tests.inference.test_cooperative import Leaves, Left

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
    "neighbours": lambda opened, _: nearest_tokens(table(opened), table(opened)[:2], 3),
    "components": lambda opened, _: principal_axes(table(opened)),
    "maximum flow": lambda _, forward: [
        *flow_to([*half_residual_layers(forward, PART, 2)], len(forward.target) - 1)
    ],
    "teacher forcing": lambda opened, run: teacher_forcing(opened.model, None, ids(run)[0], 1),
    "token paths": lambda _, forward: token_paths(forward, "decoder", (0, 1)),
    "weights": lambda opened, _: [*summarized(opened.model)],
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


def table(opened: OpenModel) -> torch.Tensor:
    return opened.model.get_parameter("decoder.embedding.weight")


class GoneReader(Leaves):
    """A run whose reader has gone."""

    def step(self) -> None:
        raise Left


@pytest.mark.parametrize("name", WORK)
def test_it_ends_when_its_reader_has_gone(name: str, small_models: Path) -> None:
    opened = opened_model.open_checkpoint(small_models / "letters", "letters")
    forward = run_text(opened, "the cat and the hat")
    with pytest.raises(Left), cooperative.run_in_thread(GoneReader()):
        WORK[name](opened, forward)
    assert torch.is_grad_enabled(), "it leaves no mode behind"
    WORK[name](opened, forward)  # the same for whoever stays


@pytest.mark.parametrize("name", RUNS_THE_CORE)
def test_it_is_refused_where_there_is_no_room_for_it(
    name: str, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_model.open_checkpoint(small_models / "letters", "letters")
    forward = run_text(opened, "the cat and the hat")
    run_text(opened, "the cat")
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "available_memory", lambda: 1_000)
    with pytest.raises(TooLargeError, match="more memory than is free"):
        WORK[name](opened, forward)
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "1_000")
    with pytest.raises(TooLargeError, match=r"forward pass would need .* the limit is 0\.001 MB"):
        WORK[name](opened, forward)


MOST_OPERATIONS, ENOUGH = 2e10, 1.5e10
"""Operations: of one core in two seconds, and those after which the reader leaves."""
SIZES: dict[str, Any] = {"d_model": 512, "n_heads": 8, "d_ff": 2048, "vocab_size": 300}


@cache
def large(seed: int = 0) -> Transformer:
    return Transformer(TransformerConfig(**SIZES, kind="decoder", n_layers=6), seed=seed)


class CountedWork(GoneReader, TorchDispatchMode):
    """Counts the operations between two looks, and leaves at the first look after ENOUGH.

    A call counts as 300,000 operations, a new number as 250, and a matrix product as it is.
    """

    done = since = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves(results) if isinstance(each, torch.Tensor)]
        product = flop_registry.get(func.overloadpacket)
        self.since += 3e5 + (product(*args, out_val=results) if product else 0)
        self.since += 250 * sum(each.numel() for each in tensors if not func.is_view)
        assert self.since < MOST_OPERATIONS, "it goes on for two seconds without a look"
        return results

    def step(self) -> None:
        self.done, self.since = self.done + self.since, 0.0
        if self.done > ENOUGH:
            raise Left


def rows_of(count: int, tokens: int) -> Batch:
    ids = torch.arange(count * tokens).view(count, tokens) % 300
    return Batch((ids,), ids)


def with_steps(work: Callable[[], object]) -> None:
    with pass_budget.steps_between_layers(large()):
        work()


ONE_STEP, SYSTEM = TrainConfig(steps=1, batch_size=2), document_systems.SYSTEMS[0]
SNAPSHOTS = [{"weights": torch.full((1000, 2000), float(at))} for at in range(9)]
LARGEST: dict[str, Callable[[OpenModel, Path], object]] = {
    "held-out rows": lambda *_: with_steps(
        lambda: value_of(nats_per_token, large(), rows_of(500, 96))
    ),
    "an update": lambda *_: with_steps(
        lambda: next(train(large(), lambda _: rows_of(2, 100), ONE_STEP))
    ),
    "a gradient": lambda *_: batch_loss(BoundedTransformer(large()), rows_of(1, 200)).backward(),
    "changes": lambda opened, _: cached(opened, 1, lambda: weight_changes(large(), large(1))),
    "landscape": lambda opened, _: cached(opened, 2, lambda: training_plane(SNAPSHOTS)),
    "museum": lambda _, root: document_systems.make_system(SYSTEM, root),
}


@pytest.mark.parametrize("name", LARGEST)
def test_within_two_seconds_it_looks_up_however_large_it_is(
    name: str, small_models: Path, tmp_path: Path
) -> None:
    """What a public server allows takes far longer; it is left on its way, and leaves nothing."""
    opened = opened_model.open_checkpoint(small_models / "letters", "letters")
    large(0), large(1)
    counted = CountedWork()
    with pytest.raises(Left), counted, cooperative.run_in_thread(counted):
        LARGEST[name](opened, tmp_path)
    assert torch.is_grad_enabled()
    assert [*tmp_path.iterdir()] == []

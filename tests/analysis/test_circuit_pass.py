"""A circuit's pass lies between the corrupted and the clean one, edge by edge."""

import pytest
import torch
from torch import Tensor

from explorer.analysis import circuit_pass
from explorer.analysis.circuit_pass import corrupted_pass
from explorer.analysis.exact_edges import exact_edges
from explorer.analysis.wiring import Wiring, WiringError, wiring_of
from models import TransformerConfig
from tests.analysis.wired_models import MODELS, contrast_of, metric_of, without_edge
from tests.models.building import config_of

EACH_MODEL = pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def random_circuits(wiring: Wiring, count: int = 6) -> Tensor:
    """Of fewer and of more edges, (count, r, w)."""
    generator = torch.Generator().manual_seed(3)
    shares = torch.linspace(0.1, 0.9, count)[:, None, None]
    return (torch.rand(count, *wiring.is_edge.shape, generator=generator) < shares) & wiring.is_edge


@EACH_MODEL
def test_all_edges_are_the_clean_pass_and_none_the_corrupted_one(
    config: TransformerConfig,
) -> None:
    contrast = contrast_of(config)
    base = corrupted_pass(contrast)
    every = wiring_of(config).is_edge
    ends = [metric_of(contrast, text) for text in (contrast.clean, contrast.corrupted)]
    assert abs(ends[0] - ends[1]) > 1e-4
    assert base.metrics(torch.stack([every, ~every & every])).tolist() == pytest.approx(
        ends, abs=1e-12
    )
    assert base.metric == pytest.approx(ends[1], abs=1e-12)


@EACH_MODEL
def test_one_corrupted_edge_is_that_edge_patched(config: TransformerConfig) -> None:
    """As `exact_edges` says, and as a whole pass with an edit at the reader's input says."""
    contrast, wiring = contrast_of(config), wiring_of(config)
    edges = [(row, column) for row, column in wiring.is_edge.nonzero().tolist()]
    every = wiring.is_edge.expand(len(edges), -1, -1).clone()
    for at, edge in enumerate(edges):
        every[at][edge] = False
    left = corrupted_pass(contrast).metrics(every)
    clean = metric_of(contrast, contrast.clean)
    exact = dict(exact_edges(contrast, edges))
    close(clean - left, torch.tensor([exact[at] for at in range(len(edges))], dtype=left.dtype))
    for at in range(0, len(edges), max(1, len(edges) // 12)):
        alone = without_edge(contrast, wiring, *edges[at])
        assert float(left[at]) == pytest.approx(alone, abs=1e-9)


@EACH_MODEL
def test_circuits_in_a_batch_are_those_one_by_one(
    config: TransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = corrupted_pass(contrast_of(config))
    circuits = random_circuits(base.wiring)
    together = base.metrics(circuits)
    assert together.std() > 0
    close(torch.cat([base.metrics(each[None]) for each in circuits]), together)
    monkeypatch.setattr(circuit_pass, "NUMBERS_HELD", 4 * base.written.numel())
    assert base.at_once == 4
    close(base.metrics(circuits), together)


@EACH_MODEL
def test_what_is_no_edge_changes_nothing(config: TransformerConfig) -> None:
    """Not to a part before the writer, nor to itself."""
    base = corrupted_pass(contrast_of(config))
    circuits = random_circuits(base.wiring)
    assert not base.wiring.is_edge.all()
    close(base.metrics(circuits | ~base.wiring.is_edge), base.metrics(circuits))
    close(base.metrics(~circuits), base.metrics(~circuits & base.wiring.is_edge))


def test_without_a_last_norm_an_edge_to_the_logits_carries_the_same_in_every_pass() -> None:
    """Alone as a circuit, as all that a circuit lacks, and patched."""
    contrast = contrast_of(MODELS["no last norm"])
    base = corrupted_pass(contrast)
    only = torch.zeros_like(base.wiring.is_edge)
    only[-1, 0] = True
    kept, left = base.metrics(torch.stack([only, base.wiring.is_edge & ~only])).tolist()
    clean = metric_of(contrast, contrast.clean)
    assert kept - base.metric == pytest.approx(clean - left, abs=1e-9)
    (exact,) = (lost for _, lost in exact_edges(contrast, [(len(base.wiring.rows) - 1, 0)]))
    assert kept - base.metric == pytest.approx(exact, abs=1e-9)


def test_a_model_without_edges_has_no_circuits() -> None:
    with pytest.raises(WiringError, match="has a norm on the residual stream"):
        corrupted_pass(contrast_of(config_of("decoder", norm_position="post")))

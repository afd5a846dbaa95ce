"""Estimates of parts and edges are those of autograd by hand."""

import pytest
import torch
from torch import Tensor

from explorer.analysis.attribution_patching import attribute, attribute_writers, positions_of_edges
from explorer.analysis.circuit_faithfulness import corrupted_pass
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import WiringError, plain_wiring, wiring_of
from models import TransformerConfig, trace
from models.gradients import GradientError
from tests.analysis.contrasts import (
    DIFFERS,
    contrast_of,
    metric_of,
    partner_values,
    passed,
    texts_of,
    written,
)
from tests.analysis.kinds_of_model import CONFIGS, SUMMED, WIRED, each_kind
from tests.closeness import assert_close_to as close
from tests.tiny import config_of

STEPS = (1, 3)
HOW = ((3, 0), (1, 1), (1, -1))
"""Steps of the way, and the tokens that the corrupted text has more than the clean one."""


def edges_by_hand(contrast: Contrast, steps: int) -> Tensor:
    """∂m/∂c at c = 0 where c times the difference of each write is added to each input, (r, w)."""
    wiring = wiring_of(contrast.config)
    clean, corrupted = (written(contrast, wiring, text) for text in texts_of(contrast))
    lost = clean - partner_values(contrast, clean, corrupted)
    factors = torch.zeros(len(wiring.rows), len(wiring.columns), dtype=lost.dtype)
    factors.requires_grad_()
    added = torch.einsum("rw,wtd->rtd", factors, lost)
    at, first = {}, 0
    for site, places in wiring.readers.items():
        at[site] = added[first : first + len(places)]
        first += len(places)
    return _mean_slope(contrast, steps, factors, at) * wiring.is_edge


def writers_by_hand(contrast: Contrast, steps: int) -> Tensor:
    """∂m/∂c at c = 0 where c times its difference is added to each write, (w,)."""
    wiring = plain_wiring(contrast.config)
    clean, corrupted = (trace(contrast.model, text) for text in texts_of(contrast))
    factors = torch.zeros(len(wiring.columns), dtype=torch.float64, requires_grad=True)
    at, first = {}, 0
    for site, places in wiring.writers.items():
        some = factors[first : first + len(places)]
        lost = clean[site][0] - partner_values(contrast, clean[site][0], corrupted[site][0])
        at[site] = some[:, None, None] * lost
        first += len(places)
    return _mean_slope(contrast, steps, factors, at)


def _mean_slope(contrast: Contrast, steps: int, by: Tensor, added: dict[str, Tensor]) -> Tensor:
    """The gradient with `added` at these sites, the mean over the way of the embedding."""
    first = next(iter(plain_wiring(contrast.config).writers))
    clean, corrupted = (trace(contrast.model, text)[first] for text in texts_of(contrast))
    corrupted = partner_values(contrast, clean, corrupted)
    total = torch.zeros_like(by)
    for step in range(1, steps + 1):
        embedding = corrupted + step / steps * (clean - corrupted)

        def shown(site: str, value: Tensor, embedding: Tensor = embedding) -> Tensor:
            value = embedding if site == first else value
            more = added.get(site)
            return value if more is None else value + (more if value.dim() == 4 else more[0])

        (slope,) = torch.autograd.grad(passed(contrast, shown), by, retain_graph=True)
        total += slope / steps
    return total


@pytest.mark.parametrize("name", each_kind(WIRED))
@pytest.mark.parametrize(("steps", "more"), HOW)
def test_estimates_are_those_of_autograd_by_hand(name: str, steps: int, more: int) -> None:
    """Of texts of equal length and of unequal ones, where the places of partners are compared."""
    config = WIRED[name]
    contrast = contrast_of(config, more=more)
    found = attribute(contrast, steps)
    assert found.edges is not None
    close(found.edges, edges_by_hand(contrast, steps))
    close(found.writers, writers_by_hand(contrast, steps))
    close(attribute_writers(contrast, steps).writers, found.writers)
    ends = [metric_of(side, side.clean) for side in (contrast, contrast.swapped)]
    assert [found.clean, found.corrupted] == pytest.approx(ends, abs=1e-12)
    close(found.edges.sum(0), found.writers)  # what a part writes has no other way to the output
    is_edge = wiring_of(config).is_edge
    assert wiring_of(config).edges == int(is_edge.sum())
    assert (found.edges[~is_edge] == 0).all()
    assert (found.edges[is_edge] != 0).any()
    places = [(reader, writer) for reader, writer in is_edge.nonzero().tolist()]
    by_position = positions_of_edges(contrast, places, steps)
    assert by_position.shape == (len(places), contrast.clean.shape[1])
    close(by_position.sum(1), found.edges[is_edge])
    if config.kind == "decoder":
        assert float(by_position[:, :DIFFERS].abs().max()) < 1e-9
    assert positions_of_edges(contrast, [], steps).shape == (0, contrast.clean.shape[1])


@pytest.mark.parametrize("name", each_kind(SUMMED))
@pytest.mark.parametrize("steps", STEPS)
def test_parts_have_estimates_where_edges_have_none(name: str, steps: int) -> None:
    contrast = contrast_of(SUMMED[name])
    found = attribute_writers(contrast, steps)
    assert found.edges is None
    close(found.writers, writers_by_hand(contrast, steps))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (SUMMED["after"], "has a norm on the residual stream, so what a head writes does not"),
        (SUMMED["around"], "has a norm on what each layer writes, so what a head writes"),
        (config_of("encoder-decoder"), "has an encoder and a decoder: the page Interventions"),
    ],
)
def test_a_model_without_edges_says_why(config: TransformerConfig, words: str) -> None:
    with pytest.raises(WiringError, match=words) as said:
        wiring_of(config)
    assert str(said.value).count(". ") == 0
    if config.kind != "encoder-decoder":
        for measure in (attribute, corrupted_pass):
            with pytest.raises(WiringError, match=words):
                measure(contrast_of(config))


def test_published_models_have_so_many_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are meant for one machine are scored, even on a server that strangers use."""
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    small = config_of("decoder", d_head=8, positions="rotary")
    gpt2 = small.replace(n_layers=12, n_heads=12, n_kv_heads=12)
    smollm2 = small.replace(n_layers=32, n_heads=15, n_kv_heads=5)
    assert wiring_of(gpt2).edges == 32_491
    assert wiring_of(smollm2).edges == int(wiring_of(smollm2).is_edge.sum())
    with pytest.raises(WiringError, match="39,667,961 edges between its parts; the limit is"):
        wiring_of(small.replace(n_layers=80, n_heads=64, n_kv_heads=64))


@pytest.mark.parametrize("steps", STEPS)
def test_weights_that_are_no_numbers_have_no_gradients(steps: int) -> None:
    contrast = contrast_of(CONFIGS["decoder"])
    with torch.no_grad():
        contrast.model.get_parameter("decoder.blocks.1.self_attn.o_proj.weight")[0, 0] = torch.nan
    with pytest.raises(GradientError, match=r"^The gradient at .* is not finite"):
        attribute(contrast, steps)

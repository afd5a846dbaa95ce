"""Edges patched as branches of one recorded pass: each is a whole pass of its own."""

import pytest
import torch

from explorer.analysis import ablation
from explorer.analysis.attribution_patching import differences_of, write_of, writes
from explorer.analysis.exact_edges import clean_pass, exact_edges
from explorer.analysis.wiring import wiring_of
from models import TransformerConfig
from tests.analysis.wired_models import (
    GROUPED,
    MODELS,
    TOKENS,
    contrast_of,
    metric_of,
    without_edge,
    written,
)
from tests.grids import grid
from tests.models.building import config_of

GROUPS = {
    "one group": GROUPED,
    "two groups": config_of("decoder", n_heads=4, n_kv_heads=2, n_layers=3),
    "grouped, alibi": config_of("decoder", positions="alibi", n_kv_heads=1, windows=(3, 2)),
    "grouped, normed": config_of("decoder", positions="rotary", n_kv_heads=1, qk_norm=True),
    "grouped, capped": config_of("decoder", n_kv_heads=1, attention_cap=2.0),
    "grouped, parallel": config_of("decoder", n_kv_heads=1, parallel=True),
}
"""Their recorded keys and values are shared, where branches have some for each head."""


def every_edge(config: TransformerConfig) -> list[tuple[int, int]]:
    return [(row, column) for row, column in wiring_of(config).is_edge.nonzero().tolist()]


@grid("differs, config", (0, 1, 3, TOKENS - 1), GROUPS.values(), pairs=False)
def test_branches_with_a_cache_of_the_shared_tokens_are_whole_passes(
    config: TransformerConfig, differs: int
) -> None:
    contrast, wiring = contrast_of(config, differs), wiring_of(config)
    assert clean_pass(contrast).start(f"{wiring.stack}.self_attn") == differs
    edges = every_edge(config)
    clean = metric_of(contrast, contrast.clean)
    found = dict(exact_edges(contrast, edges))
    assert sorted(found) == list(range(len(edges)))
    for at in range(0, len(edges), max(1, len(edges) // 40)):
        alone = without_edge(contrast, wiring, *edges[at])
        assert found[at] == pytest.approx(clean - alone, abs=1e-9), edges[at]


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_only_a_text_read_forwards_has_a_cache(config: TransformerConfig) -> None:
    """The rest is computed whole: no position of it is known to be alike."""
    contrast, wiring = contrast_of(config, differs=3), wiring_of(config)
    read_at_one = config.kind == "decoder" and config.head == "language-model"
    assert clean_pass(contrast).start(f"{wiring.stack}.self_attn") == (3 if read_at_one else 0)
    edges = every_edge(config)[::5]
    found = dict(exact_edges(contrast, edges))
    clean = metric_of(contrast, contrast.clean)
    for at in range(0, len(edges), max(1, len(edges) // 12)):
        alone = without_edge(contrast, wiring, *edges[at])
        assert found[at] == pytest.approx(clean - alone, abs=1e-9), edges[at]


def test_in_any_order_and_in_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    contrast, edges = contrast_of(GROUPED), every_edge(GROUPED)
    found = dict(exact_edges(contrast, edges))
    backwards = edges[::-1]
    again = dict(exact_edges(contrast, backwards))
    by_edge = {backwards[at]: lost for at, lost in again.items()}
    assert by_edge == pytest.approx({edges[at]: lost for at, lost in found.items()}, abs=1e-12)
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 1)
    assert dict(exact_edges(contrast, edges)) == pytest.approx(found, abs=1e-12)
    twice = dict(exact_edges(contrast, [edges[7], edges[7]]))
    assert twice[0] == twice[1] == pytest.approx(found[7], abs=1e-12)
    assert list(exact_edges(contrast, [])) == []


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_differences_of_writes_are_those_head_by_head(config: TransformerConfig) -> None:
    contrast, wiring = contrast_of(config), wiring_of(config)
    both = (contrast.clean, contrast.corrupted)
    clean, corrupted = (written(contrast, wiring, text) for text in both)
    found = differences_of(contrast, wiring).by_site
    every = writes(contrast.model, wiring, found)
    assert float((every - (clean - corrupted)).abs().max()) < 1e-12
    for column, wrote in enumerate(every):
        one = write_of(contrast.model, wiring, found, column)
        torch.testing.assert_close(one, wrote, rtol=0, atol=1e-12)

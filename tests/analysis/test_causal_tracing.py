"""The grid of causal tracing is a pass with one edit for each cell."""

from itertools import product

import pytest
import torch

from explorer.analysis import ablation
from explorer.analysis.causal_tracing import (
    ATTENTION,
    FEED_FORWARD,
    RESIDUAL,
    TracedGrid,
    Tracing,
    mean_grid,
)
from explorer.analysis.contrast import Contrast
from models import TransformerConfig, trace
from models.interventions import ReplaceAt
from tests.grids import grid
from tests.models.building import config_of, ids_of, shaken

SITES = (RESIDUAL, ATTENTION, FEED_FORWARD)
DIFFERS = 2
MODELS = {
    "decoder": config_of("decoder"),
    "rotary, grouped": config_of("decoder", positions="rotary", n_kv_heads=1, n_layers=3),
    "windows": config_of("decoder", positions="alibi", windows=(0, 2)),
    "parallel": config_of("decoder", parallel=True, norm_position="pre"),
    "post": config_of("decoder", norm_position="post"),
    "encoder": config_of("encoder", head="masked-language-model"),
    "classifier": config_of("encoder", head="classifier"),
    "the last token decides": config_of("decoder", head="classifier", pooling="last"),
}


def contrast_of(config: TransformerConfig, place: int = -1) -> Contrast:
    clean = ids_of(1, 5)
    corrupted = clean.clone()
    corrupted[0, DIFFERS] = clean[0, DIFFERS] % 10 + 3
    place = place if place >= 0 else 4 if config.kind == "decoder" else 3
    return Contrast(
        shaken(config, torch.float32),
        clean,
        corrupted,
        place,
        lambda logits: logits[:, 0] - logits[:, 1],
    )


def grid_of(contrast: Contrast, site: str, denoising: bool) -> TracedGrid:
    tracing = Tracing(contrast, site, denoising)
    return tracing.grid([*tracing.columns()])


@grid("site, denoising, config", SITES, (True, False), MODELS.values())
def test_every_cell_is_a_pass_of_its_own(
    config: TransformerConfig, site: str, denoising: bool
) -> None:
    contrast = contrast_of(config)
    found = grid_of(contrast, site, denoising)
    both = contrast.clean, contrast.corrupted
    passed, other = both[::-1] if denoising else both
    values = trace(contrast.model, other, sites=[f"*.{site}"])
    assert found.values.shape == (config.n_layers, 5)
    for layer, position in product(range(config.n_layers), range(5)):
        at = f"{config.stacks[-1]}.{layer}.{site}"
        edit = ReplaceAt(at, position, values[at][0, position])
        alone = trace(contrast.model, passed, read_at=contrast.read_at, edits=[edit]).output
        assert found.values[layer, position] == pytest.approx(
            float(contrast.measured(alone)), abs=1e-5
        )
    ends = [
        float(contrast.measured(trace(contrast.model, text, read_at=contrast.read_at).output))
        for text in both
    ]
    assert [found.clean, found.corrupted] == pytest.approx(ends, abs=1e-5)


def test_the_embedding_of_the_only_other_token_is_the_whole_difference() -> None:
    for denoising in (True, False):
        found = grid_of(contrast_of(MODELS["decoder"]), RESIDUAL, denoising)
        shares = found.share
        assert shares[0].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-5)
        assert found.normalised[0, 2] == pytest.approx(1 if denoising else 0, abs=1e-5)
        assert found.change[0, 2] == pytest.approx(found.clean - found.corrupted, abs=1e-5)


def test_a_shorter_rest_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no batch holds more than it may."""
    decoder, encoder = (
        Tracing(contrast_of(MODELS[n]), RESIDUAL, True) for n in ("decoder", "encoder")
    )
    assert decoder.cost < encoder.cost
    monkeypatch.setattr(ablation, "NUMBERS_HELD", 1)
    whole = grid_of(contrast_of(MODELS["decoder"]), RESIDUAL, True)
    torch.testing.assert_close(whole.values, decoder.grid([*decoder.columns()]).values)


def test_the_mean_over_pairs() -> None:
    one, other = (TracedGrid(torch.full((2, 3), n), n, -n, True) for n in (1.0, 3.0))
    mean = mean_grid([one, other])
    assert (mean.clean, mean.corrupted, float(mean.values[0, 0])) == (2.0, -2.0, 2.0)
    assert mean.normalised.tolist() == [[1.0] * 3] * 2

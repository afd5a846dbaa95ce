"""A watched pass is the unwatched one, over the grid of kinds, positions and norms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.config import KINDS, NORM_POSITIONS, NORMS, POSITIONS
from models.trace import CHEAP_SITES, Recorder, Trace, trace
from models.transformer import Transformer
from tests.grids import grid
from tests.models.building import config_of, inputs_of, keeps_of, shaken
from tests.models.grid import KINDS_AND_POSITIONS

close = torch.testing.assert_close


def attentions(watched: Trace) -> list[str]:
    ends = ".weights"
    return [site.removesuffix(ends) for site in watched.sites if site.endswith(ends)]


def assert_rows_sum_to_one_or_nothing(watched: Trace) -> None:
    for site in attentions(watched):
        weights, mask = watched.weights(site), watched.mask(site).expand_as(watched.weights(site))
        close(weights.sum(-1), mask.any(-1).to(weights.dtype))
        assert (weights[~mask] == 0).all()


def assert_derived_is_recorded(cheap: Trace, watched: Trace) -> None:
    for site in attentions(watched):
        assert f"{site}.weights" not in cheap
        close(cheap.weights(site), watched[f"{site}.weights"])
        close(cheap.scores(site), watched[f"{site}.scores"])
        close(cheap.weights(site, head=1), watched.weights(site, head=1))
        close(cheap.scores(site, head=2), watched.scores(site, head=2))


@grid(
    "kind, positions, norm, norm_position, n_kv_heads",
    *(KINDS, POSITIONS, NORMS, NORM_POSITIONS, (None, 1)),
)
def test_fused_is_watched_is_derived(
    kind: str, positions: str, norm: str, norm_position: str, n_kv_heads: int | None
) -> None:
    how = {"positions": positions, "norm": norm, "norm_position": norm_position}
    config = config_of(kind, n_kv_heads=n_kv_heads, **how)
    model, inputs = shaken(config), inputs_of(config)
    for side in ("none", "left", "right"):
        keeps = keeps_of(config, side)
        with torch.no_grad():
            unwatched = model(*inputs, **keeps)
        watched = trace(model, *inputs, **keeps)
        cheap = trace(model, *inputs, **keeps, sites=CHEAP_SITES)
        assert unwatched.isfinite().all()
        close(watched.output, unwatched, rtol=0, atol=1e-10)
        assert torch.equal(cheap.output, unwatched), "keeping q, k, v changes no bit"
        assert_rows_sum_to_one_or_nothing(watched)
        assert_derived_is_recorded(cheap, watched)


def test_one_head_is_cut_out_of_all() -> None:
    config = config_of("decoder", positions="alibi", n_kv_heads=1)
    seen = trace(shaken(config), *inputs_of(config), **keeps_of(config, "left"))
    for head in range(config.n_heads):
        weights, scores = (seen[f"decoder.1.self_attn.{x}"][:, head] for x in ("weights", "scores"))
        assert torch.equal(seen.weights("decoder.1.self_attn", head=head), weights)
        assert torch.equal(seen.scores("decoder.1.self_attn", head=head), scores)


def test_weights_follow_from_a_recorded_bias() -> None:
    config = config_of("decoder", positions="alibi")
    model, inputs = shaken(config), inputs_of(config)
    kept = trace(model, *inputs, sites=("*.q", "*.k", "*.mask", "*.bias"))
    site = "decoder.1.self_attn"
    close(kept.weights(site, head=1), trace(model, *inputs).weights(site, head=1))


def gradients(model: Transformer, output: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    output.square().sum().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@grid("kind, positions, side", KINDS, POSITIONS, ("none", "left", "right"))
def test_gradients_are_the_same_on_both_paths(kind: str, positions: str, side: str) -> None:
    config = config_of(kind, positions=positions)
    model, inputs, keeps = shaken(config), inputs_of(config), keeps_of(config, side)
    fused = gradients(model, model(*inputs, **keeps))
    watched = gradients(model, model(*inputs, **keeps, tap=Recorder()))
    assert fused.keys() == watched.keys() == dict(model.named_parameters()).keys()
    for name, gradient in fused.items():
        assert gradient.isfinite().all(), name
        close(watched[name], gradient, rtol=1e-9, atol=1e-9)


@KINDS_AND_POSITIONS
def test_single_precision(kind: str, positions: str) -> None:
    config = config_of(kind, positions=positions)
    model, inputs, keeps = (
        shaken(config, torch.float32),
        inputs_of(config),
        keeps_of(config, "left"),
    )
    watched = trace(model, *inputs, **keeps)
    close(watched.output, model(*inputs, **keeps), rtol=1e-4, atol=1e-4)
    assert_derived_is_recorded(trace(model, *inputs, **keeps, sites=CHEAP_SITES), watched)


def test_the_documented_sites_are_there() -> None:
    config = config_of("encoder-decoder")
    watched = trace(shaken(config), *inputs_of(config))
    inside = [f"{{}}.{name}" for name in "q k v scores mask bias weights head_out out".split()]
    block = [each.format("self_attn") for each in inside]
    block += "mlp.hidden mlp.out resid_pre resid_mid resid_post".split()
    crossing = [*block, *(each.format("cross_attn") for each in inside), "resid_cross"]
    expected = {"memory", "logits"}
    for stack, layers, names in (("encoder", 1, block), ("decoder", 2, crossing)):
        expected |= {f"{stack}.{i}.{name}" for i in range(layers) for name in names}
        expected |= {f"{stack}.{name}" for name in ("positions", "embed", "pos_embed", "final")}
    assert set(watched.sites) == expected


def test_patterns_choose_what_is_kept() -> None:
    config = config_of("decoder")
    model, inputs = shaken(config), inputs_of(config)
    assert trace(model, *inputs, sites=("decoder.1.self_attn.[qk]", "logits")).sites == (
        "decoder.1.self_attn.q",
        "decoder.1.self_attn.k",
        "logits",
    )
    assert trace(model, *inputs, sites=()).sites == ()


def test_a_short_name_is_enough_when_it_is_the_only_one() -> None:
    config = config_of("decoder")
    watched = trace(shaken(config), *inputs_of(config))
    assert watched["pos_embed"] is watched["decoder.pos_embed"]
    assert "pos_embed" not in watched
    with pytest.raises(KeyError, match=r"decoder\.0\.resid_pre or decoder\.1\.resid_pre"):
        watched["resid_pre"]
    with pytest.raises(KeyError, match="was not recorded"):
        watched["decoder.7.resid_pre"]
    with pytest.raises(IndexError, match="has no head 3: there are 3"):
        watched.weights("decoder.0.self_attn", head=3)


def test_memory_does_not_grow_with_the_square_of_the_text() -> None:
    config = config_of("decoder", max_len=64)
    model = shaken(config)

    def held(length: int) -> int:
        kept = trace(model, *inputs_of(config, 1, length), sites=CHEAP_SITES)
        values = [value for name, value in kept.values.items() if not name.endswith(".mask")]
        return sum(value.untyped_storage().nbytes() for value in values)

    assert held(64) <= 2 * held(32)


def test_dropout_is_off_while_watching_and_on_again_after() -> None:
    config = config_of("decoder", dropout=0.5)
    model, inputs = shaken(config).train(), inputs_of(config)
    watched = trace(model, *inputs)
    assert model.training
    assert all(module.training for module in model.modules())
    assert not watched.output.requires_grad
    close(model.eval()(*inputs), watched.output)

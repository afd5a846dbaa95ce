"""One layer: its norms, its residual stream and what it sees of the source."""

from __future__ import annotations

import torch
from torch import nn

from models.block import Block, Residual, Surroundings
from models.normalization import NORMS, LayerNorm, RMSNorm
from models.trace import Recorder
from tests.models.building import SMALL, shake

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))
MEMORY = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(2))
close = torch.testing.assert_close


def test_norms_are_torchs_and_finite_at_zero() -> None:
    for name, theirs in (("layer", nn.LayerNorm(12, 0.01)), ("rms", nn.RMSNorm(12, 0.01))):
        ours = shake(NORMS[name](12, 0.01))
        theirs.load_state_dict(ours.state_dict(), strict=True)
        assert torch.equal(ours(X * 3 + 1), theirs(X * 3 + 1))
    for norm in (LayerNorm(4), RMSNorm(4)):
        x = torch.zeros(1, 4, requires_grad=True)
        norm(x).sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_residuals_are_those_of_the_papers() -> None:
    pre, post, sandwich = (
        shake(Residual(SMALL.replace(norm_position=where))) for where in ("pre", "post", "sandwich")
    )
    close(pre(X, torch.sin), X + pre.norm(X).sin())
    close(post(X, torch.sin), post.norm(X + X.sin()))
    close(sandwich(X, torch.sin), X + sandwich.out_norm(sandwich.norm(X).sin()))


def test_the_stream_passes_every_site_in_order() -> None:
    block, tap = shake(Block(SMALL, cross=True)), Recorder()
    out = block(X, Surroundings(memory=MEMORY), tap=tap)
    values = tap.values
    stream = X + values["self_attn.out"]
    assert torch.equal(values["resid_pre"], X)
    close(values["resid_mid"], stream)
    stream = stream + values["cross_attn.out"]
    close(values["resid_cross"], stream)
    close(out, stream + values["mlp.out"])
    assert torch.equal(values["resid_post"], out)
    order = ["resid_pre", "resid_mid", "resid_cross", "resid_post"]
    assert [site for site in values if site.startswith("resid")] == order
    shapes = {site: tuple(value.shape) for site, value in values.items()}
    for attention, keys in (("self_attn", 5), ("cross_attn", 7)):
        assert shapes[f"{attention}.q"] == shapes[f"{attention}.head_out"] == (2, 3, 5, 4)
        assert shapes[f"{attention}.k"] == shapes[f"{attention}.v"] == (2, 3, keys, 4)
        assert shapes[f"{attention}.scores"] == shapes[f"{attention}.weights"] == (2, 3, 5, keys)
        assert shapes[f"{attention}.mask"] == shapes[f"{attention}.bias"] == (1, 1, 5, keys)
    assert shapes["mlp.hidden"] == (2, 5, 20)


def test_a_block_may_have_no_feed_forward_layer() -> None:
    block, tap = Block(SMALL.replace(d_ff=0)), Recorder()
    assert not any("mlp" in name for name, _ in block.named_parameters())
    close(block(X, Surroundings(), tap=tap), X + tap.values["self_attn.out"])


def test_memory_is_seen_through_its_mask() -> None:
    block = shake(Block(SMALL, cross=True))
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[..., 4:] = False
    shorter = block(X, Surroundings(memory=MEMORY[:, :4]))
    close(block(X, Surroundings(memory=MEMORY, memory_mask=mask)), shorter)
    assert not torch.allclose(block(X, Surroundings(memory=MEMORY)), shorter)

"""One layer: the order of its parts, and where the norm stands."""

from __future__ import annotations

import torch

from models.block import Block, Residual, Surroundings
from models.trace import Recorder
from tests.models.building import SMALL, shake

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))
MEMORY = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(2))


def test_residuals_are_those_of_the_papers() -> None:
    pre = shake(Residual(SMALL.replace(norm_position="pre")))
    post = shake(Residual(SMALL.replace(norm_position="post")))
    torch.testing.assert_close(pre(X, torch.sin), X + pre.norm(X).sin())
    torch.testing.assert_close(post(X, torch.sin), post.norm(X + X.sin()))


def test_the_stream_passes_every_site_in_order() -> None:
    block, tap = shake(Block(SMALL, cross=True)), Recorder()
    out = block(X, Surroundings(memory=MEMORY), tap=tap)
    values = tap.values
    assert torch.equal(values["resid_pre"], X)
    assert torch.equal(values["resid_post"], out)
    stream = X + values["self_attn.out"]
    torch.testing.assert_close(values["resid_mid"], stream)
    stream = stream + values["cross_attn.out"]
    torch.testing.assert_close(values["resid_cross"], stream)
    torch.testing.assert_close(out, stream + values["mlp.out"])
    order = ("resid_pre", "resid_mid", "resid_cross", "resid_post")
    assert [site for site in values if site.startswith("resid")] == list(order)


def test_sites_have_the_shapes_they_are_documented_with() -> None:
    tap = Recorder()
    Block(SMALL, cross=True)(X, Surroundings(memory=MEMORY), tap=tap)
    shapes = {site: tuple(value.shape) for site, value in tap.values.items()}
    for attention, keys in (("self_attn", 5), ("cross_attn", 7)):
        assert shapes[f"{attention}.q"] == shapes[f"{attention}.head_out"] == (2, 3, 5, 4)
        assert shapes[f"{attention}.k"] == shapes[f"{attention}.v"] == (2, 3, keys, 4)
        assert shapes[f"{attention}.scores"] == shapes[f"{attention}.weights"] == (2, 3, 5, keys)
        assert shapes[f"{attention}.mask"] == shapes[f"{attention}.bias"] == (1, 1, 5, keys)
        assert shapes[f"{attention}.out"] == (2, 5, 12)
    assert shapes["mlp.hidden"] == (2, 5, 20)


def test_a_block_may_have_no_feed_forward_layer() -> None:
    block = Block(SMALL.replace(d_ff=0))
    assert not any("mlp" in name for name, _ in block.named_parameters())
    tap = Recorder()
    out = block(X, Surroundings(), tap=tap)
    torch.testing.assert_close(out, X + tap.values["self_attn.out"])


def test_memory_is_seen_through_its_mask() -> None:
    block = shake(Block(SMALL, cross=True))
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[..., 4:] = False
    shorter = block(X, Surroundings(memory=MEMORY[:, :4]))
    torch.testing.assert_close(block(X, Surroundings(memory=MEMORY, memory_mask=mask)), shorter)
    assert not torch.allclose(block(X, Surroundings(memory=MEMORY)), shorter)

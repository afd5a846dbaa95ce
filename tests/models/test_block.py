"""One layer: its residual stream, and a norm where there is nothing to divide by."""

import torch

from models.block import Block, StackContext
from models.normalization import LayerNorm, RMSNorm
from models.trace import RecordingTap
from tests.closeness import assert_close_to
from tests.models.building import SMALL, shake

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))
MEMORY = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(2))


def test_the_norm_of_zeros_has_finite_gradients() -> None:
    for norm in (LayerNorm(4), RMSNorm(4)):
        x = torch.zeros(1, 4, requires_grad=True)
        norm(x).sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_the_stream_passes_every_site_in_order() -> None:
    block, tap = shake(Block(SMALL, cross=True)), RecordingTap()
    out = block(X, StackContext(memory=MEMORY), tap=tap)
    values = tap.values
    stream = X + values["self_attn.out"]
    assert torch.equal(values["resid_pre"], X)
    assert_close_to(values["resid_mid"], stream)
    stream = stream + values["cross_attn.out"]
    assert_close_to(values["resid_cross"], stream)
    assert_close_to(out, stream + values["mlp.out"])
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

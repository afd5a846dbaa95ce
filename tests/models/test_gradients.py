"""Gradients at named sites: those of autograd by hand, and those of finite differences."""

import pytest
import torch
from torch import Tensor

from models.gradients import GradientError, gradients
from models.interventions import Add, EditError, Replace, Scale
from models.normalization import LayerNorm, RMSNorm
from models.trace import trace
from tests.closeness import assert_close_to as close
from tests.models.grid import ODDITIES
from tests.tiny import SMALL, inputs_of, shaken

OF_MLP = ("*.mlp.input", "*.hidden")
SITES = (
    *("*.embed", "*.q", "*.k", "*.v", "*.weights", "*.head_out", "*.out"),
    *(*OF_MLP, "*.resid_*", "*.final", "memory"),
)
MODEL, (IDS,) = shaken(SMALL), inputs_of(SMALL)
OF_HEADS = ("*.q_input", "*.k_input", "*.v_input")
"""Apart, since grouped keys and values are a head's own where these are changed."""


def one_number(output: Tensor) -> Tensor:
    """All of the output counts, each part by a factor of its own."""
    return (output.flatten() * torch.linspace(-1, 1, output.numel(), dtype=output.dtype)).sum()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("sites", [SITES, OF_HEADS], ids=["shared", "of heads"])
@pytest.mark.parametrize("name", ODDITIES)
def test_gradients_are_those_of_finite_differences(name: str, sites: tuple[str, ...]) -> None:
    """A small step at all sites at once, each in a random direction of its own."""
    config = ODDITIES[name].replace(activation="gelu")  # a kink has no slope
    model, inputs = shaken(config), inputs_of(config, batch=2)
    sites = tuple(site for site in sites if config.d_ff or site not in OF_MLP)
    found = gradients(model, *inputs, of=one_number, sites=sites)
    assert found.values
    random = torch.Generator().manual_seed(0)
    directions = {
        site: torch.randn(value.shape, generator=random, dtype=value.dtype)
        for site, value in found.values.items()
    }
    up, down = (
        one_number(trace(model, *inputs, sites=(), edits=step).output)
        for step in ([Add(*each, size) for each in directions.items()] for size in (1e-5, -1e-5))
    )
    slope = sum(float((found.gradients[site] * each).sum()) for site, each in directions.items())
    assert slope == pytest.approx(float(up - down) / 2e-5, rel=1e-5, abs=1e-6)


def test_rows_of_a_batch_know_nothing_of_each_other() -> None:
    sites = ("*.head_out", "*.q_input")
    together = gradients(MODEL, IDS, of=lambda out: out[:, -1, 3].sum(), sites=sites)
    for row in range(len(IDS)):
        alone = gradients(MODEL, IDS[row : row + 1], of=lambda out: out[0, -1, 3], sites=sites)
        for site, gradient in alone.gradients.items():
            close(together.gradients[site][row : row + 1], gradient)


def test_gradients_are_taken_one_by_one_from_the_output_backwards() -> None:
    sites = ("*.q_input", "*.mlp.input", "*.resid_post")
    kept = gradients(MODEL, IDS, of=one_number, sites=sites)
    taken: dict[str, Tensor] = {}
    found = gradients(MODEL, IDS, of=one_number, sites=sites, take=taken.__setitem__)
    assert found.values == found.gradients == {}
    assert [*taken] == [*reversed(kept.gradients)]
    assert all(torch.equal(taken[site], each) for site, each in kept.gradients.items())
    first = [site for site in taken if site.startswith("decoder.0")]

    def leave(site: str, gradient: Tensor) -> None:
        if site in first:
            raise InterruptedError(site)

    with pytest.raises(InterruptedError, match=first[0]):
        gradients(MODEL, IDS, of=one_number, sites=sites, take=leave)


def test_what_reaches_no_output_has_no_gradient() -> None:
    sites = ("*.head_out", "*.resid_pre")
    cut = Scale("decoder.1.self_attn.head_out", 0.0)
    found = gradients(MODEL, IDS, of=lambda out: out.sum() * 0, sites=sites, edits=[cut])
    assert [*found.gradients] == [*found.values]
    assert all((each == 0).all() for each in found.gradients.values())


def test_an_edit_is_made_before_the_gradient_is_taken() -> None:
    ablated = Scale("decoder.0.self_attn.head_out", head=1)
    found = gradients(MODEL, IDS, of=one_number, sites=("*.head_out",), edits=[ablated])
    assert (found.values["decoder.0.self_attn.head_out"][:, 1] == 0).all()
    expected = one_number(trace(MODEL, IDS, edits=[ablated]).output)
    assert found.scalar == pytest.approx(float(expected))
    with pytest.raises(EditError, match="No site of this pass is called nowhere"):
        gradients(MODEL, IDS, of=one_number, sites=(), edits=[Scale("nowhere")])


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="A gradient is that of one number"):
        gradients(MODEL, IDS, of=lambda out: out, sites=("*.embed",))
    with pytest.raises(GradientError, match=r"The gradient at .* is not finite"):
        gradients(MODEL, IDS, of=lambda out: out.sum() * torch.inf, sites=("*.embed",))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("name", ODDITIES)
def test_a_head_reads_an_input_of_its_own(name: str) -> None:
    """As if the whole residual stream were changed, in that head; the others are as they were."""
    config = ODDITIES[name]
    model, inputs = shaken(config), inputs_of(config)
    plain = trace(model, *inputs)
    ways = ("q_input", "k_input", "v_input")
    for stack in config.stacks:
        layer = f"{stack}.{(config.encoder_layers if stack == 'encoder' else config.n_layers) - 1}"
        at = f"{layer}.self_attn"
        same = [Replace(f"{at}.{way}", plain[f"{at}.{way}"].clone()) for way in ways]
        close(trace(model, *inputs, edits=same).output, plain.output)
        halved = trace(model, *inputs, edits=[Scale(f"{layer}.resid_pre", 0.5)])
        every = trace(model, *inputs, edits=[Scale(f"{at}.{way}", 0.5) for way in ways])
        close(every[f"{at}.out"], halved[f"{at}.out"])
        for way, site in zip(ways, (f"{at}.q", f"{at}.k", f"{at}.v"), strict=True):
            close(trace(model, *inputs, edits=[Scale(f"{at}.{way}", 0.5)])[site], every[site])
        alone = trace(model, *inputs, edits=[Scale(f"{at}.{way}", 0.5, head=1) for way in ways])
        for head in range(config.n_heads):
            expected = halved if head == 1 else plain
            close(alone[f"{at}.head_out"][:, head], expected[f"{at}.head_out"][:, head])


def test_the_norm_of_zeros_has_finite_gradients() -> None:
    for norm in (LayerNorm(4), RMSNorm(4)):
        x = torch.zeros(1, 4, requires_grad=True)
        assert torch.autograd.grad(norm(x).sum(), x)[0].isfinite().all()

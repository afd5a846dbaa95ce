"""A watched pass is the unwatched one, and leaves no trace on the model."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from models.block import StackContext
from models.config import KINDS, POSITIONS, GenerationConfig
from models.gradients import gradients as gradients_at
from models.interventions import Replace, Scale
from models.masking import causal_mask
from models.model import Transformer, build_block
from models.trace import CHEAP_SITES, RecordingTap, Trace, trace
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.models.edits import RemoveKey
from tests.models.grid import GRID, SOME_OF_EACH
from tests.tiny import SMALL, config_of, ids_of, inputs_of, keeps_of, shake, shaken


def assert_derived_is_recorded(cheap: Trace, watched: Trace) -> None:
    """And every row sums to one, or to nothing where the mask leaves nothing."""
    for site in watched.sites:
        attention, _, name = site.rpartition(".")
        if name != "weights":
            continue
        weights, scores = watched[site], watched[f"{attention}.scores"]
        mask = watched[f"{attention}.mask"].expand_as(weights)
        assert_close_to(weights.sum(-1), mask.any(-1).to(weights.dtype))
        assert (weights[~mask] == 0).all()
        assert site not in cheap
        assert_close_to(cheap.weights(attention), weights)
        assert_close_to(cheap.scores(attention), scores)
        for seen in (cheap, watched):
            assert_close_to(seen.weights(attention, head=1), weights[:, 1])
            assert_close_to(seen.scores(attention, head=2), scores[:, 2])


@GRID
def test_fused_is_watched_is_derived(
    kind: str, positions: str, norm: str, norm_position: str, kv_heads: int
) -> None:
    config = config_of(kind, positions=positions, norm=norm, n_kv_heads=kv_heads)
    config = config.replace(norm_position=norm_position)
    model, inputs = shaken(config), inputs_of(config)
    for side in ("none", "left", "right", "left in 32 bits"):
        model, keeps = model.double(), keeps_of(config, side.split()[0])
        if side.endswith("bits"):
            model = model.float()
        with torch.no_grad():
            unwatched = model(*inputs, **keeps)
        watched = trace(model, *inputs, **keeps)
        cheap = trace(model, *inputs, **keeps, sites=CHEAP_SITES)
        biased = trace(model, *inputs, **keeps, sites=(*CHEAP_SITES, "*.bias"))
        assert unwatched.isfinite().all()
        assert_close_to(watched.output, unwatched)
        assert torch.equal(cheap.output, unwatched), "keeping q, k, v changes no bit"
        assert_derived_is_recorded(cheap, watched)
        assert_derived_is_recorded(biased, watched)


def gradient(model: Transformer, output: Tensor) -> Tensor:
    """That of all parameters as one vector, since a key's bias has one of rounding alone."""
    return parameters_to_vector(torch.autograd.grad(output.square().sum(), [*model.parameters()]))


@grid("kind, positions, side", KINDS, POSITIONS, ("none", "left", "right"))
def test_gradients_are_those_of_finite_differences(kind: str, positions: str, side: str) -> None:
    """On both paths, for a step of all parameters in a random direction."""
    config = config_of(kind, positions=positions, activation="gelu")  # a kink has no slope
    model, inputs, keeps = shaken(config), inputs_of(config), keeps_of(config, side)
    fused = gradient(model, model(*inputs, **keeps))
    assert fused.isfinite().all()
    assert_close_to(gradient(model, model(*inputs, **keeps, tap=RecordingTap())), fused)
    at = parameters_to_vector(model.parameters()).detach()
    direction = torch.randn(at.shape, generator=torch.Generator().manual_seed(3), dtype=at.dtype)
    moved = []
    with torch.no_grad():
        for step in (1e-5, -1e-5):
            vector_to_parameters(at + step * direction, model.parameters())
            moved.append(float(model(*inputs, **keeps).square().sum()))
    assert (moved[0] - moved[1]) / 2e-5 == pytest.approx(float(fused @ direction), rel=1e-6)


def test_the_stream_passes_every_site_in_order() -> None:
    generator = torch.Generator().manual_seed(1)
    x, memory = (torch.randn(2, n, 12, generator=generator) for n in (5, 7))
    block, tap = shake(build_block(SMALL, cross=True)), RecordingTap()
    out = block(x, StackContext(memory=memory), tap=tap)
    values = tap.values
    stream = x + values["self_attn.out"]
    assert torch.equal(values["resid_pre"], x)
    assert_close_to(values["resid_mid"], stream)
    stream = stream + values["cross_attn.out"]
    assert_close_to(values["resid_cross"], stream)
    assert_close_to(out, stream + values["mlp.out"])
    assert torch.equal(values["resid_post"], out)
    order = ["resid_pre", "resid_mid", "resid_cross", "resid_post"]
    assert [site for site in values if site.startswith("resid")] == order
    shapes = {site: tuple(value.shape) for site, value in values.items()}
    for attention, keys in (("self_attn", 5), ("cross_attn", 7)):
        assert shapes[f"{attention}.mask"] == shapes[f"{attention}.bias"] == (1, 1, 5, keys)


def test_the_documented_sites_are_there() -> None:
    config = config_of("encoder-decoder")
    watched = trace(shaken(config), *inputs_of(config))
    inside = "norm q_proj q_norm k_proj k_norm q k v mask bias scores masked weights head_out"
    inside += " out out_norm add"
    block = [f"self_attn.{name}" for name in (*inside.split(), "q_input", "k_input", "v_input")]
    block += [f"mlp.{name}" for name in "input norm up hidden out add out_norm".split()]
    block += "resid_pre resid_mid resid_post".split()
    crossing = [*block, *(f"cross_attn.{name}" for name in inside.split()), "resid_cross"]
    expected = {"memory", "logits", "head.transform"}
    for stack, layers, names in (("encoder", 1, block), ("decoder", 2, crossing)):
        expected |= {f"{stack}.{i}.{name}" for i in range(layers) for name in names}
        around = "positions embed pos_embed sum embed_norm final"
        expected |= {f"{stack}.{name}" for name in around.split()}
    assert set(watched.sites) == expected


def test_patterns_choose_what_is_kept_and_a_unique_short_name_finds_it() -> None:
    config = config_of("decoder")
    model, inputs = shaken(config), inputs_of(config)
    kept = trace(model, *inputs, sites=("decoder.1.self_attn.[qk]", "logits"))
    assert kept.sites == ("decoder.1.self_attn.q", "decoder.1.self_attn.k", "logits")
    assert trace(model, *inputs, sites=()).sites == ()
    (weights,) = trace(model, *inputs, sites="decoder.1.*.weights").sites
    assert weights == "decoder.1.self_attn.weights"
    watched = trace(model, *inputs)
    assert watched["pos_embed"] is watched["decoder.pos_embed"]
    with pytest.raises(KeyError, match=r"decoder\.0\.resid_pre or decoder\.1\.resid_pre"):
        watched["resid_pre"]
    with pytest.raises(KeyError, match="was not recorded"):
        watched["decoder.7.resid_pre"]
    with pytest.raises(IndexError, match="has no head 3: there are 3"):
        watched.weights("decoder.0.self_attn", head=3)


SITES_OF_IT = r": it has decoder\.embed, .*, decoder\.\*\.mlp\.out, .* \(\* is a layer, 0 to 1\)\."


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("ids", "sites", "sentence"),
    [
        (None, ["decoder.0.self_attn.wieghts"], r"wieghts" + SITES_OF_IT),
        (None, "encoder.*.weights", r"no site encoder\.\*\.weights" + SITES_OF_IT),
        (None, ["*.weights", "logit"], "no site logit" + SITES_OF_IT),
        (None, ["decoder.7.mlp.out"], r"no site decoder\.7\.mlp\.out" + SITES_OF_IT),
        (None, None, "sites are names of sites, or patterns"),
        (torch.tensor([3, 1]), (), r"of shape \(b, t\), not int64 of shape \(2,\)"),
        (torch.ones(1, 2, 1), (), r"of shape \(b, t\), not float32 of shape \(1, 2, 1\)"),
        ([[3, 1]], (), r"a tensor of shape \(b, t\), not a list"),
        (torch.tensor([[3, 99]]), (), "The ID 99 is not in the vocabulary, 0 to"),
        (torch.tensor([[3, -1]]), (), "The ID -1 is not in the vocabulary, 0 to"),
    ],
)
def test_sites_and_ids_of_no_pass_are_one_sentence(ids: Any, sites: Any, sentence: str) -> None:
    config = config_of("decoder")
    model, inputs = shaken(config), inputs_of(config)
    ids = inputs[0] if ids is None else ids
    for run in (trace, partial(gradients_at, of=torch.sum)):
        with pytest.raises((TypeError, ValueError), match=sentence) as error:
            run(model, ids, sites=sites)
        assert "\n" not in str(error.value)


def test_memory_does_not_grow_with_the_square_of_the_text() -> None:
    config = config_of("decoder", max_len=64)
    model, held = shaken(config), []
    for length in (32, 64):
        kept = trace(model, *inputs_of(config, 1, length), sites=CHEAP_SITES).values
        values = [value for name, value in kept.items() if not name.endswith(".mask")]
        held.append(sum(value.untyped_storage().nbytes() for value in values))
    assert held[1] <= 2 * held[0]


@SOME_OF_EACH
def test_nothing_of_a_pass_stays_on_the_model(kind: str, positions: str) -> None:
    ends = GenerationConfig(eos_ids=(2,))
    config = config_of(kind, positions=positions, bos_id=1, generation=ends)
    model, inputs = shaken(config), inputs_of(config)
    before = pickle.dumps(model)
    model(*inputs)
    trace(model, *inputs, edits=[Scale("*.self_attn.head_out", head=1)])
    gradients_at(model, *inputs, of=Tensor.sum, sites=("*.head_out",))
    assert all(each.grad is None and each.requires_grad for each in model.parameters())
    if kind != "encoder":
        model.generate(inputs[0], max_length=4)
    assert pickle.dumps(model) == before


@pytest.mark.usefixtures("shapes_unchecked")
def test_eight_threads_give_what_one_gives() -> None:
    """Passes of many kinds, each with its own input."""
    model = shaken(config_of("decoder", positions="alibi"), torch.float32)
    site = "decoder.1.self_attn"

    def job(number: int) -> tuple[Tensor, ...]:
        ids = ids_of(2, 6, seed=number)
        edits = (
            Scale("decoder.0.self_attn.head_out", head=number % 3),
            RemoveKey("decoder.*.self_attn.weights", number % 6),
            Replace("decoder.0.self_attn.mask", causal_mask(6)),
        )
        edited = trace(model, ids, edits=edits[number % 3 :])
        derived = trace(model, ids, sites=CHEAP_SITES).weights(site, number % 3)
        written = model.generate(ids[:, :3], max_length=5, seed=number)
        return edited.output, edited.weights(site), derived, written

    numbers = [*range(12)] * 3
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(job, numbers))
    for number, results in zip(numbers, together, strict=True):
        assert all(map(torch.equal, job(number), results))

"""Every mistake of the documents, made on purpose in a copy: the numbers that show it."""

import math

import pytest
import torch
from torch import Tensor

from docs.document_numbers import NUMBERS, SOURCE, TARGET, THREE, untrained_notebook, with_mistakes
from explorer.analysis.position_schemes import doubled_sinusoids
from explorer.views.museum import paired_training
from explorer.views.museum.exhibits import EXHIBITS
from explorer.views.museum.mistakes import MISTAKES, copy_of
from models import Transformer, TransformerConfig
from models.config import KINDS, GenerationConfig
from models.generation import start_ids
from models.transformer import evaluating
from tests.grids import grid
from tests.tiny import assert_equal_weights, config_of, ids_of, inputs_of, shake, shaken, weights

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

SIZES = {"d_model": 16, "n_heads": 2}
CONFIGS = {kind: config_of(kind, **SIZES) for kind in KINDS}
PAIRS = [(name, kind) for name in MISTAKES for kind in KINDS]
FITTING = [(name, kind) for name, kind in PAIRS if MISTAKES[name].misfit(CONFIGS[kind]) is None]
WRITING = [(name, kind) for name, kind in FITTING if kind != "encoder" and name != "never-appends"]
TELLING = ((0.3, 1), (0.3, 4), (0.6, 3))
"""Noise and seed of models that write other words with a cache than without one."""


@pytest.fixture(scope="module")
def notebook() -> Transformer:
    """The notebook's whole model as it was meant."""
    return untrained_notebook()


def wrong(config: TransformerConfig, name: str) -> tuple[Transformer, Transformer, tuple]:
    """A model, the same with a mistake, and what both read."""
    right = shaken(config, torch.float32)
    return right, MISTAKES[name].make(right), inputs_of(config, batch=1)


def test_every_mistake_fits_some_kind_and_leaves_its_model_as_it_was() -> None:
    kinds = dict(FITTING)
    assert kinds.keys() == MISTAKES.keys()
    for name, kind in kinds.items():
        right, bad, inputs = wrong(config_of(kind, **SIZES), name)
        before, types = weights(right), [type(module) for module in right.modules()]
        with evaluating(right):
            expected = right(*inputs)
            bad(*inputs)
            assert torch.equal(right(*inputs), expected), name
        assert [type(module) for module in right.modules()] == types
        assert_equal_weights(weights(right), before)
    model = shaken(config_of("encoder-decoder"))
    pairs = zip(model.parameters(), copy_of(model).parameters(), strict=True)
    assert all(one.data_ptr() == other.data_ptr() for one, other in pairs), "it costs no memory"


def by_whole_passes(model: Transformer, source: Tensor, steps: int) -> Tensor:
    """The likeliest token after everything that stands there, read from the start each time."""
    written = start_ids(model, source)
    with evaluating(model):
        memory = model.encode(source) if model.encoder is not None else None
        for _ in range(steps):
            keep = torch.ones_like(written, dtype=torch.bool)
            best = model.decode(written, memory, keep=keep)[:, -1].argmax(-1)
            written = torch.cat((written, best[:, None]), 1)
    return written


@grid("mistake, telling", WRITING, TELLING)
def test_writing_is_that_of_passes(mistake: tuple[str, str], telling: tuple[float, int]) -> None:
    """A cache must not hide a mistake, nor show another one."""
    (name, kind), source = mistake, ids_of(1, 5)
    model = MISTAKES[name].make(shake(Transformer(config_of(kind, **SIZES)), *telling).eval())
    written = model.generate(source, max_length=7, temperature=0.0)
    assert torch.equal(written, by_whole_passes(model, source, 7))


def test_two_mistakes_of_writing_in_either_order() -> None:
    """The lost target must not take the place of a writing that is a mistake itself."""
    model = shake(Transformer(config_of("encoder-decoder", **SIZES)), *TELLING[1]).eval()
    loses, forgets = (MISTAKES[name].make for name in ("lost-target", "never-appends"))
    both, turned, lost = (
        made.generate(ids_of(1, 5), max_length=7, temperature=0.0)
        for made in (forgets(loses(model)), loses(forgets(model)), loses(model))
    )
    assert torch.equal(both, turned)
    assert not torch.equal(both, lost)


def test_a_second_change_is_a_misfit() -> None:
    """A mistake is one change: a model in which it would make two cannot have it."""
    usual = config_of("encoder-decoder", **SIZES)
    for name, changed, why in (
        ("fixed-heads", usual.replace(qk_norm=True), "norms of queries and keys"),
        ("fixed-heads", usual.replace(attention_scale=0.5), "its scale is not 1/√d_k"),
        ("doubled-exponent", usual.replace(pairs="halves"), "all sines first"),
    ):
        assert MISTAKES[name].misfit(usual) is None
        assert why in (MISTAKES[name].misfit(changed) or "")


def test_the_numbers_of_the_documents(notebook: Transformer, subtests: pytest.Subtests) -> None:
    printed = {exhibit.name: exhibit.numbers for exhibit in EXHIBITS if exhibit.numbers}
    assert printed.keys() == NUMBERS.keys()
    for name, compute in NUMBERS.items():
        with subtests.test(name=name), torch.no_grad():
            assert [tuple(values) for _, *values in printed[name]] == compute(notebook)


def written_in_the_notebook(length: int, width: int) -> Tensor:
    """The notebook's loop, word for word."""
    pe = torch.zeros(length, width)
    for pos in range(length):
        for i in range(0, width, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / width)))
            pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / width)))
    return pe


def test_1_the_doubled_exponent() -> None:
    table = doubled_sinusoids(torch.arange(60), 512)
    assert torch.allclose(table.float(), written_in_the_notebook(60, 512), atol=1e-6)
    model = MISTAKES["doubled-exponent"].make(Transformer(config_of("encoder")))
    table = model.last_stack.positions.get_buffer("pe")[0]
    assert torch.allclose(table, written_in_the_notebook(16, 12), atol=1e-6)


def test_3_the_lost_target(notebook: Transformer) -> None:
    """What is left of the target is rounding: 4e-7 or 5e-7, as the processor has it."""

    def moved(model: Transformer, other: Tensor) -> float:
        with evaluating(model):
            return float((model(SOURCE, other) - model(SOURCE, TARGET)).abs().max())

    lost = with_mistakes(notebook, *THREE)
    for other in (TARGET.flip(0), torch.zeros_like(TARGET)):
        assert moved(lost, other) < 1e-6
        assert moved(notebook, other) > 1


def test_4_writing_that_never_appends() -> None:
    ends = GenerationConfig(eos_ids=(2,))
    config = config_of("encoder-decoder", bos_id=1, generation=ends, dropout=0.5)
    _, bad, (source, target) = wrong(config, "never-appends")
    assert bad.generate(source, max_length=9).shape == (1, 10), "it knows no end"
    bad.train()
    assert not torch.equal(bad(source, target), bad(source, target)), "dropout stays on"


def test_5_one_projection_for_all_heads() -> None:
    """With the first head's bias: to lose it would be another mistake."""
    right, bad, _ = wrong(config_of("encoder"), "shared-projection")
    x = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(0))
    for name in ("q_proj", "k_proj", "v_proj"):
        site = f"blocks.0.self_attn.{name}"
        first = right.last_stack.get_submodule(site)
        weight, bias = first.get_parameter("weight")[:4, :4], first.get_parameter("bias")[:4]
        slices = [x[..., start : start + 4] @ weight.mT + bias for start in (0, 4, 8)]
        given = bad.last_stack.get_submodule(site)(x)
        assert torch.allclose(given, torch.cat(slices, -1), atol=1e-6)


def test_8_softmax_twice() -> None:
    for config in (config_of("decoder"), config_of("encoder", head="classifier")):
        right, bad, inputs = wrong(config, "softmax-twice")
        assert torch.allclose(bad(*inputs), right(*inputs).softmax(-1))


def test_12_learning_noise() -> None:
    """On the batch just learned it is right; on texts it never saw, a coin does as well."""
    last = {point.curve: point.value for point in paired_training.train_on_random_labels(40)}
    assert last["random labels, training batch"] == 1
    assert 0.4 < last["random labels, held out"] < 0.6
    assert last["real labels, held out"] > 0.6


def test_13_the_order_of_the_norms() -> None:
    for where, other in (("pre", "post"), ("post", "pre")):
        config = config_of("encoder", norm_position=where)
        right, bad, inputs = wrong(config, "norm-order")
        rebuilt = Transformer(config.replace(norm_position=other)).eval()
        rebuilt.load_state_dict(right.state_dict())
        assert torch.equal(bad(*inputs), rebuilt(*inputs))
        assert not torch.allclose(bad(*inputs), right(*inputs), atol=1e-3)

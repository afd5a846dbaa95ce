"""Every mistake of the documents, made on purpose: the numbers that give it away."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.museum import documents, learning
from models import Transformer, TransformerConfig, trace
from models.attention import scaled_dot_product_attention
from models.mistakes import MISTAKES
from models.mistakes.attention import four_fills
from models.mistakes.outputs import lowest_loss
from models.mistakes.positions import barely_moving, doubled_sinusoids, spread_at
from models.positional import sinusoids
from models.presets import notebook_tutorial, web_tutorial_classifier
from models.transformer import evaluating
from tests.models.building import config_of, inputs_of, shaken

HERE = torch.arange(60)
SOURCE, TARGET = torch.tensor(documents.SOURCE), torch.tensor(documents.TARGET)


@pytest.fixture(scope="module")
def notebook() -> Iterator[Transformer]:
    """The notebook's whole model as it was meant; one thread, since two are slower here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield documents.notebook()
    torch.set_num_threads(threads)


def wrong(config: TransformerConfig, name: str) -> tuple[Transformer, Transformer, tuple]:
    """A model, the same with a mistake, and what both read."""
    right = shaken(config, torch.float32)
    return right, MISTAKES[name].make(right), inputs_of(config, batch=1)


def written_in_the_notebook(length: int, width: int) -> Tensor:
    """The notebook's loop, word for word."""
    pe = torch.zeros(length, width)
    for pos in range(length):
        for i in range(0, width, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / width)))
            pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / width)))
    return pe


def moved(model: Transformer, source: Tensor, target: Tensor, other: Tensor) -> float:
    with evaluating(model):
        return float((model(source, other) - model(source, target)).abs().max())


def test_1_the_doubled_exponent() -> None:
    bad, good = doubled_sinusoids(HERE, 512), sinusoids(HERE, 512)
    assert torch.allclose(bad.float(), written_in_the_notebook(60, 512), atol=1e-6)
    assert [round(x, 4) for x in bad[1, :4].tolist()] == [0.8415, 0.5697, 0.8020, 0.6234]
    assert [round(x, 4) for x in good[1, :4].tolist()] == [0.8415, 0.5403, 0.8219, 0.5697]
    assert (barely_moving(bad), barely_moving(good)) == (307, 102)
    assert round(spread_at(bad, 5), 2) == 1.36
    assert spread_at(good, 5) < 1e-13
    model = MISTAKES["doubled-exponent"].make(Transformer(config_of("encoder")))
    assert model.encoder is not None
    table = model.encoder.positions.get_buffer("pe")[0]
    assert torch.allclose(table, written_in_the_notebook(16, 12), atol=1e-6)


def test_2_softmax_over_the_batch(notebook: Transformer) -> None:
    as_written = documents.wrong(
        notebook, "doubled-exponent", "shared-projection", "lost-target", "batch-softmax"
    )
    with evaluating(as_written):
        one = as_written(SOURCE[:1], TARGET[:1])
        printed = MISTAKES["never-appends"].make(as_written).generate(SOURCE[:1], max_length=12)
    assert torch.equal(one, torch.ones_like(one))
    assert printed[0, 1:].tolist() == [0] * 12


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
def test_2_torch_takes_the_batch_when_it_is_told_nothing() -> None:
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(F.softmax(logits), logits.softmax(0))


def test_3_the_lost_target(notebook: Transformer) -> None:
    """What is left of the target is rounding: 4e-7 or 5e-7, as the processor has it."""
    lost = documents.wrong(notebook, "doubled-exponent", "shared-projection", "lost-target")
    for other in (TARGET.flip(0), torch.zeros_like(TARGET), (TARGET + 3) % 11):
        assert moved(lost, SOURCE, TARGET, other) < 1e-6
        assert moved(notebook, SOURCE, TARGET, other) > 1
    exactly = deepcopy(lost).double()
    assert moved(exactly, SOURCE, TARGET, TARGET.flip(0)) < 1e-14


def test_4_writing_that_never_appends(notebook: Transformer) -> None:
    lost = documents.wrong(notebook, "lost-target", "never-appends")
    ids = lost.generate(SOURCE[:1], max_length=12)[0, 1:].tolist()
    assert len(ids) == 12
    assert len(set(ids)) == 1, "the repeated token"
    with pytest.raises(RuntimeError, match="2 elements cannot be converted to Scalar"):
        lost.generate(SOURCE, max_length=2)


def test_4_it_knows_no_end_and_keeps_dropout_on() -> None:
    config = config_of("encoder-decoder", bos_id=1, eos_id=2, dropout=0.5)
    _, bad, (source, target) = wrong(config, "never-appends")
    assert bad.generate(source, max_length=9).shape == (1, 10)
    bad.train()
    with torch.no_grad():
        assert not torch.equal(bad(source, target), bad(source, target))


def test_5_one_projection_for_all_heads() -> None:
    with torch.device("meta"):
        right = Transformer(notebook_tutorial())
    assert documents.count_of(MISTAKES["shared-projection"].make(right)) == 30_193_163
    assert documents.count_of(right) == 44_127_755


def test_5_swapping_two_slices_only_swaps_two_heads() -> None:
    right, bad, _ = wrong(config_of("encoder"), "shared-projection")
    x = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(0))
    swapped = x[..., [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]]
    for model, same in ((bad, True), (right, False)):
        assert model.encoder is not None
        attention = model.encoder.get_submodule("blocks.0.self_attn")

        def heads(read: Tensor, attention: torch.nn.Module = attention) -> Tensor:
            q, k, v = (
                attention.split(getattr(attention, name)(read))  # type: ignore[operator]
                for name in ("q_proj", "k_proj", "v_proj")
            )
            return scaled_dot_product_attention(q, k, v)[0]

        with torch.no_grad():
            assert torch.allclose(heads(x)[:, [1, 0, 2]], heads(swapped)) is same


def test_6_the_decoder_always_has_eight_heads() -> None:
    model = Transformer(notebook_tutorial(num_layers=1, n_heads=4))
    bad = MISTAKES["fixed-heads"].make(model)
    seen = trace(bad, SOURCE, TARGET, sites=("*.q",))
    shapes = {site: tuple(seen[site].shape[1::2]) for site in seen.sites}
    assert shapes == {
        "encoder.0.self_attn.q": (4, 128),
        "decoder.0.self_attn.q": (8, 64),
        "decoder.0.cross_attn.q": (8, 64),
    }


def test_7_no_padding_mask() -> None:
    model = Transformer(web_tutorial_classifier().replace(pad_id=0)).eval()
    blind = MISTAKES["no-padding-mask"].make(model)
    ids = torch.randint(1, 5000, (1, 20), generator=torch.Generator().manual_seed(0))
    longer = F.pad(ids, (0, 10))
    with evaluating(model):
        assert torch.allclose(model(longer), model(ids), atol=1e-5)
        assert float((blind(longer) - blind(ids)).abs().max()) > 0.02
        assert torch.equal(blind(ids), model(ids))


def test_8_softmax_twice() -> None:
    certain = torch.full((1, 11), -100.0)
    certain[0, 3] = 100.0
    label = torch.tensor([3])
    assert float(F.cross_entropy(certain, label)) == 0
    twice = float(F.cross_entropy(certain.softmax(-1), label))
    assert twice == pytest.approx(lowest_loss(11)) == pytest.approx(1.5430, abs=1e-4)
    for kind in ("decoder", "encoder"):
        config = config_of(kind, head="language-model" if kind == "decoder" else "classifier")
        right, bad, inputs = wrong(config, "softmax-twice")
        assert torch.allclose(bad(*inputs), right(*inputs).softmax(-1))


def test_9_a_number_in_place_of_a_mask() -> None:
    scores = torch.tensor([0.3, -1.2, 0.8])
    single, half = four_fills(scores, torch.float32), four_fills(scores, torch.float16)
    for name in ("−1e9", "−1e20"):
        row = single[name]
        assert row is not None
        assert torch.allclose(row, torch.full((3,), 1 / 3))
        assert half[name] is None, "the number does not fit"
    for found in (single, half):
        nothing, ours = found["−∞"], found["lowest finite number, then zero"]
        assert nothing is not None
        assert ours is not None
        assert nothing.isnan().all()
        assert ours.eq(0).all()


def test_9_in_a_model() -> None:
    right, bad, (ids,) = wrong(config_of("encoder"), "filled-row")
    site, nothing = "encoder.0.self_attn.weights", torch.zeros_like(ids, dtype=torch.bool)
    rows = {model: trace(model, ids, keep=nothing)[site][0, 0, 0] for model in (bad, right)}
    assert torch.allclose(rows[bad], torch.full_like(rows[bad], 1 / ids.shape[1]))
    assert rows[right].eq(0).all()
    assert torch.allclose(bad(ids), right(ids), atol=1e-5), "where a row sees something, alike"


def test_10_weights_are_dropped_and_no_mask_arrives() -> None:
    right, bad, (ids,) = wrong(config_of("decoder"), "dropped-weights")
    other = ids.clone()
    other[0, -1] = 3 if ids[0, -1] != 3 else 4
    with evaluating(right):
        assert torch.equal(right(other)[:, :-1], right(ids)[:, :-1])
        assert float((bad(other) - bad(ids))[:, :-1].abs().max()) > 1e-3
    assert not [site for site in trace(bad, ids).sites if "weights" in site]
    assert [site for site in trace(right, ids).sites if "weights" in site]


def test_11_the_printed_count() -> None:
    total, embedding, layer, norm = documents.printed_count()
    assert total[1:] == ("398,272", "520,064")
    assert 320_000 + 4 * 49_984 + 128 == 520_064
    assert (embedding[2], layer[2], norm[2]) == ("320,000", "49,984", "128")


def test_12_learning_noise() -> None:
    """On the batch just learned it is right; on texts it never saw, a coin does as well."""
    last = {point.curve: point.value for point in learning.random_labels(40)}
    assert last["noise, on the batch just learned"] == 1
    assert 0.4 < last["noise, held out"] < 0.6
    assert last["real labels, held out"] > 0.6


def test_13_the_order_of_the_norms() -> None:
    for where, other in (("pre", "post"), ("post", "pre")):
        config = config_of("encoder", norm_position=where)
        right, bad, inputs = wrong(config, "norm-order")
        rebuilt = Transformer(config.replace(norm_position=other)).eval()
        rebuilt.load_state_dict(right.state_dict())
        assert torch.equal(bad(*inputs), rebuilt(*inputs))
        assert not torch.allclose(bad(*inputs), right(*inputs), atol=1e-3)


def test_14_the_scale_and_the_frequencies() -> None:
    right, bad, inputs = wrong(config_of("encoder"), "wrong-scale")
    site = "encoder.0.self_attn.scores"
    factor = trace(bad, *inputs)[site] / trace(right, *inputs)[site]
    assert torch.allclose(factor, torch.full_like(factor, math.sqrt(4 / 12)), atol=1e-4)
    assert documents.wrong_scale()[0][2] == "256", "one frequency for each pair of 512"

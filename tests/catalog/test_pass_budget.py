"""A pass that is too large is refused before it runs; one that does not fit now waits."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from explorer.catalog import ModelError, opened_model, pass_budget
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer, PassShape, pass_size, reserve, room_for
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.system import cooperative
from explorer.system.cooperative import Budget
from explorer.system.limits import PASS_TOKENS
from models import Transformer, trace
from models.loading.checkpoint import Checkpoint
from models.trace import CHEAP_SITES
from tests.closeness import assert_close_to
from tests.models.grid import ODDITIES
from tests.tiny import ids_of, million_positions, oversized_model


def test_row_1_a_text_too_long_never_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """13 KB and 300 letters were 27,000 tokens, 8 GB, and the end of the server."""
    opened = million_positions(tmp_path / "model")
    assert sum(file.stat().st_size for file in (tmp_path / "model").iterdir()) < 30_000
    monkeypatch.setattr(Transformer, "forward", None)  # no pass is made
    with pytest.raises(ForwardPassError, match="has 27,000 tokens; the limit is 4,096") as long:
        run_text(opened, "a" * 300)
    assert long.value.cut is not None
    assert long.value.cut.kept_text == "a" * (PASS_TOKENS.most // 90)
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "3_000_000")
    with pytest.raises(ForwardPassError, match=r"would need .* MB of memory") as large:
        run_text(opened, "a" * 40)
    assert large.value.cut is not None
    monkeypatch.undo()
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_BYTES", "3_000_000")
    assert run_text(opened, large.value.cut.kept_text).tokens, "what is left of it is read"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"n_heads": 1_000_000, "d_head": 1}, "n_heads must be between 1 and 512"),
        ({"n_heads": 500, "d_head": 1, "n_layers": 200}, "200 layers of 500 heads are too many"),
        ({"vocab_size": 1_000_000}, "vocab_size must be between 1 and 300,000"),
        ({"vocab_size": 300_000, "d_model": 100_000}, "An embedding of 300,000 tokens × 100,000"),
    ],
)
def test_row_4_a_model_of_endless_heads_or_words_is_refused_by_its_config(
    sizes: dict[str, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is built for it: it took 70 seconds of every page, and nine minutes of two cores."""
    folder = oversized_model(tmp_path / "model", **sizes)
    monkeypatch.setattr(Transformer, "__init__", None)
    with pytest.raises(ModelError, match=said) as refused:
        opened_model.open_checkpoint(folder, "hungry")
    assert str(refused.value).count(". ") == 0


def test_a_large_product_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, looks = nn.Linear(6, 5), torch.randn(2, 4, 6, requires_grad=True), Mock()
    whole = layer(x)
    monkeypatch.setattr(pass_budget, "MULTIPLICATIONS", 60)  # two rows of six times five
    with cooperative.run_in_thread(looks), pass_budget.SteppingOperations():
        in_parts = layer(x)
        product = x[0] @ x[1].mT
    assert looks.step.call_count == (1 + 4) + 2 + 1 + (1 + 2)
    assert_close_to(in_parts, whole)
    assert_close_to(product, x[0] @ x[1].mT)
    looks.reset_mock()
    with cooperative.run_in_thread(looks):
        (gradient,) = torch.autograd.grad(in_parts.sum(), x)
    assert looks.step.call_count == 4
    assert_close_to(gradient, layer.weight.sum(0).expand_as(x))


def test_a_pass_without_room_now_waits(letters: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that fit alone the second begins when the first has ended."""
    shape = PassShape(tokens=20)
    need = pass_size(letters.config, shape).peak
    order: list[str] = []
    waits = Event()
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "MEMORY", Budget(lambda: need * 3 // 2))
    monkeypatch.setattr(cooperative, "_cancel_check", waits.set)

    def second() -> None:
        with room_for(letters.config, shape):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        with room_for(letters.config, shape):
            later = pool.submit(second)
            waits.wait()
            order.append("first")
        later.result()
    assert order == ["first", "second"]


def test_a_pass_waits_for_a_model_that_is_being_loaded(
    letters: OpenModel, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take from one budget: neither is given what the other is about to take."""
    need = pass_size(letters.config, PassShape(tokens=20, read=20)).peak
    order: list[str] = []
    begun, waits = Event(), Event()
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "available_memory", lambda: 2 * need)
    monkeypatch.setattr(opened_model, "_size", lambda _: 2 * need)
    monkeypatch.setattr(cooperative, "_cancel_check", waits.set)
    load = opened_model.load_checkpoint

    def loading(folder: Path) -> Checkpoint:
        begun.set()
        waits.wait()
        order.append("loaded")
        return load(folder)

    def passed() -> None:
        trace(letters.model, ids_of(1, 20), sites=CHEAP_SITES)
        order.append("passed")

    monkeypatch.setattr(opened_model, "load_checkpoint", loading)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(opened_model.open_checkpoint, small_models / "letters", "letters")
        begun.wait()
        pool.submit(passed).result()
        first.result()
    assert order == ["loaded", "passed"]


@pytest.mark.parametrize("name", ODDITIES)
def test_a_pass_with_steps_is_the_pass(name: str) -> None:
    config = ODDITIES[name]
    model = Transformer(config).eval()
    given = (ids_of(2, 6), ids_of(2, 4))[: 1 + (config.kind == "encoder-decoder")]
    plain = trace(model, *given, sites=CHEAP_SITES)
    stepped = trace(BoundedTransformer(model), *given, sites=CHEAP_SITES)
    assert stepped.sites == plain.sites
    assert torch.equal(stepped.output, plain.output)
    assert all(torch.equal(stepped[site], plain[site]) for site in plain.sites)


def test_a_pass_in_its_room_waits_not(letters: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_budget, "MEMORY", Budget(lambda: 1_000))
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    for _ in range(2):  # what was reserved is given back
        with reserve(900):
            assert run_text(letters, "abc").tokens, "it would wait for this very room"

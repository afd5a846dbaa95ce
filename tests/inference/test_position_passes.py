"""Positions put to the test: order and length, on real passes."""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.catalog.opened_model import OpenModel
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from explorer.inference.position_passes import (
    can_run,
    extrapolate,
    in_scheme,
    permuted,
    repeated,
    reversed_order,
    swapped_order,
    twin,
)
from models.config import KINDS, POSITIONS
from models.positional import sinusoids
from tests.closeness import assert_close_to
from tests.tiny import saved_and_opened

Make = Callable[..., tuple[OpenModel, ForwardPass]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A shaken model of a kind and a scheme, and what it reads."""

    def pass_of(kind: str, positions: str, **more: Any) -> tuple[OpenModel, ForwardPass]:
        how = {"kind": kind, "positions": positions, **more}
        opened = saved_and_opened(tmp_path, f"{kind}-{positions}", shaken_by=0.4, **how)
        return opened, forward_pass.run_text(opened, "the black cat sleeps le chat")

    return pass_of


def test_a_twin_shares_its_weights_and_passes_as_a_model_built_that_way(make: Make) -> None:
    for scheme in POSITIONS:
        model = make("decoder", scheme)[0].model
        again, ids = twin(model, scheme), torch.tensor([[3, 4, 5, 6]])
        with torch.no_grad():
            assert_close_to(again(ids), model(ids), what=scheme)
        theirs = {p.data_ptr() for p in model.parameters()}
        assert all(p.data_ptr() in theirs for p in again.parameters()), scheme


def test_trained_numbers_are_never_made_up(make: Make) -> None:
    sinusoidal, learned = (make("decoder", name)[0].model for name in ("sinusoidal", "learned"))
    able = {name for name in POSITIONS if can_run(sinusoidal, name)}
    assert able == {"sinusoidal", "rotary", "alibi", "none"}
    assert can_run(learned, "learned")
    with pytest.raises(ValueError, match="24 rows"):
        twin(learned, "learned", 48)
    with pytest.raises(ValueError, match="trained parameters"):
        twin(learned, "relative")
    opened, _ = make("decoder", "sinusoidal")
    positions = in_scheme(opened, "sinusoidal", 60).model.last_stack.positions
    table = dict(positions.named_buffers())["pe"][0]
    assert_close_to(table, sinusoids(torch.arange(60), opened.config.d_model).float())


def test_a_model_with_many_positions_has_a_twin_as_long_as_its_text(make: Make) -> None:
    """A table of sinusoids for all of them would be larger than what is built."""
    for kind in ("decoder", "encoder-decoder"):
        opened, found = make(kind, "rotary", max_len=1_000_000)
        assert can_run(opened.model, "sinusoidal", 2_000)
        assert not can_run(opened.model, "sinusoidal", 1_000_000)
        with pytest.raises(ValueError, match="too large"):
            twin(opened.model, "sinusoidal")
        order = reversed_order(found)
        result = permuted(opened, found, order, "sinusoidal")
        again = in_scheme(opened, "sinusoidal", 2_000).model
        turned = [found.tokens[place] for place in order]
        for passed, tokens in ((result.before, found.tokens), (result.after, turned)):
            inputs = [tokens, found.target] if found.source else [tokens]
            with torch.no_grad():
                output = again(*(ids_of([each]) for each in inputs))
            assert_close_to(passed.trace.output[0, -1], output[0, -1], what=kind)


def test_without_positions_and_mask_only_the_order_changes(make: Make) -> None:
    order = [3, 0, 6, 1, 5, 2, 4]
    for kind in ("encoder", "encoder-decoder"):
        opened, found = make(kind, "none", max_len=9)
        assert len(found.tokens) == len(order)
        result = permuted(opened, found, order, "none")
        assert result.largest < 1e-5
        for part in found.parts:
            before = result.before.weights(part.name, 0, 1)
            assert_close_to(result.put_back(part.name, 0, 1), before)


def test_every_scheme_of_positions_and_a_causal_mask_see_the_order(make: Make) -> None:
    for scheme in POSITIONS:
        opened, found = make("decoder" if scheme == "none" else "encoder", scheme)
        assert permuted(opened, found, reversed_order(found), scheme).largest > 1e-3, scheme
    opened, found = make("encoder", "sinusoidal")
    assert permuted(opened, found, reversed_order(found), "none").largest < 1e-5, "taken away"
    opened, found = make("decoder", "rotary")
    same = swapped_order(found, 2, 2)
    assert permuted(opened, found, same, "rotary").largest < 1e-6
    _, found = make("encoder", "none")
    order = reversed_order(found)
    assert order == [0, *range(len(order) - 1, 0, -1)]


def test_a_text_beyond_the_trained_length_is_really_passed(make: Make) -> None:
    schemes = [name for name in POSITIONS if name != "learned"]
    for scheme, kind in zip(schemes, cycle(KINDS), strict=False):
        opened, found = make(kind, scheme)
        result = extrapolate(opened, found, 48, scheme, found.parts[-1].name, 0, 1)
        assert result.trained == 24
        assert len(result.effective_keys) == 48
        assert (result.effective_keys >= 1 - 1e-4).all(), (scheme, kind)
        assert (result.effective_keys <= 48 + 1e-3).all(), (scheme, kind)
        assert (result.nats is not None) == (kind == "decoder")
    tokens = make("encoder-decoder", "none")[1].tokens
    for length in (7, 8, 20, 33):
        again = repeated(tokens, length)
        assert len(again) == length
        assert again[-1].special == tokens[-1].special
        assert [t.id for t in again[:6]] == [t.id for t in tokens[:6]]


def test_what_is_lost_on_each_token_is_the_loss_of_the_pass(make: Make) -> None:
    opened, found = make("decoder", "alibi")
    result = extrapolate(opened, found, 30, "alibi", "decoder.self_attn", 0, 0)
    ids = ids_of([repeated(found.tokens, 30)])
    with torch.no_grad():
        logits = in_scheme(opened, "alibi", 30).model(ids)
    expected = torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none")
    assert result.nats is not None
    assert_close_to(result.nats, expected)

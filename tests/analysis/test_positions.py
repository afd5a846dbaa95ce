"""Positions put to the test: order, length and the doubled exponent, on real passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer import library, reading
from explorer.analysis.positions import (
    backwards,
    can_have,
    in_scheme,
    longer,
    moved,
    repeated,
    right_and_doubled,
    swapped,
    twin,
)
from explorer.library import Opened
from explorer.reading import Reading
from explorer.text import word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from models.positional import sinusoids
from tests.grids import grid
from tests.models.building import shake
from tests.shelf import WORDS, put

TEXT = "the black cat sleeps le chat"
SCHEMES = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
SPECIAL = {"encoder": CLASSIFIER, "decoder": DECODER, "encoder-decoder": SOURCE}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a shaken model of a kind and a scheme."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))

    def make(kind: str, positions: str, **more: Any) -> Opened:
        name = f"{kind}-{positions}"
        put(
            tmp_path,
            name,
            word_tokenizer(WORDS, SPECIAL[kind]),
            "the cat",
            kind=kind,
            positions=positions,
            **more,
        )
        opened = library.open_model(name)
        shake(opened.model, by=0.4)
        return opened

    return make


# ---- the doubled exponent -------------------------------------------------------------


def test_the_numbers_of_the_document_give_the_doubled_exponent_away() -> None:
    right, wrong = right_and_doubled(512, 60, 5)
    assert [f"{value:.4f}" for value in right.first] == ["0.8415", "0.5403", "0.8219", "0.5697"]
    assert [f"{value:.4f}" for value in wrong.first] == ["0.8415", "0.5697", "0.8020", "0.6234"]
    assert (right.still, wrong.still) == (102, 307)
    assert f"{wrong.spread:.2f}" == "1.36"
    assert right.spread < 1e-12


# ---- the same weights in another scheme -----------------------------------------------


def test_a_twin_shares_its_weights_and_passes_as_a_model_built_that_way(
    made: Any, subtests: pytest.Subtests
) -> None:
    for scheme in SCHEMES:
        with subtests.test(scheme=scheme):
            opened = made("decoder", scheme)
            again = twin(opened.model, scheme)
            ids = torch.tensor([[3, 4, 5, 6]])
            with torch.no_grad():
                torch.testing.assert_close(again(ids), opened.model(ids))
            theirs = {p.data_ptr() for p in opened.model.parameters()}
            assert all(p.data_ptr() in theirs for p in again.parameters())


def test_trained_numbers_are_never_made_up(made: Any) -> None:
    opened = made("decoder", "sinusoidal")
    assert not can_have(opened.model, "learned")
    assert not can_have(opened.model, "relative")
    assert all(can_have(opened.model, name) for name in ("rotary", "alibi", "none"))
    assert can_have(made("decoder", "learned").model, "learned")


def test_what_has_no_twin_is_said_in_a_sentence(made: Any) -> None:
    model = made("decoder", "learned").model
    with pytest.raises(ValueError, match="24 rows"):
        twin(model, "learned", 48)
    with pytest.raises(ValueError, match="trained numbers"):
        twin(model, "relative")


def test_a_model_with_many_positions_has_a_twin_as_long_as_its_text(
    made: Any, subtests: pytest.Subtests
) -> None:
    """A table of sinusoids for all of them would be larger than what is built."""
    for kind in ["decoder", "encoder-decoder"]:
        with subtests.test(kind=kind):
            opened = made(kind, "rotary", max_len=1_000_000)
            found = reading.read(opened, TEXT)
            assert can_have(opened.model, "sinusoidal", 2_000)
            assert not can_have(opened.model, "sinusoidal", 1_000_000)
            with pytest.raises(ValueError, match="too large"):
                twin(opened.model, "sinusoidal")
            order = backwards(found)
            result = moved(opened, found, order, "sinusoidal")
            again = in_scheme(opened, "sinusoidal", 2_000)
            ids = [token.id for token in found.tokens], [found.tokens[place].id for place in order]
            for passed, tokens in zip((result.before, result.after), ids, strict=True):
                read = torch.tensor([tokens])
                target = torch.tensor([[token.id for token in found.target]])
                with torch.no_grad():
                    output = again.model(read, target) if found.source else again.model(read)
                torch.testing.assert_close(passed.trace.output[0, -1], output[0, -1])


def test_a_longer_table_of_sinusoids_goes_on_by_the_formula(made: Any) -> None:
    opened = made("decoder", "sinusoidal")
    positions = in_scheme(opened, "sinusoidal", 60).model.last_stack.positions
    table = dict(positions.named_buffers())["pe"][0]
    torch.testing.assert_close(
        table, sinusoids(torch.arange(60), opened.config.d_model).float(), atol=1e-6, rtol=0
    )


# ---- another order --------------------------------------------------------------------


@pytest.fixture(params=["encoder", "encoder-decoder"])
def blind(made: Any, request: pytest.FixtureRequest) -> tuple[Opened, Reading]:
    """A model without positions that reads what was typed without a causal mask."""
    opened = made(request.param, "none", max_len=9)
    return opened, reading.read(opened, TEXT)


@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(order=st.permutations(range(7)))
def test_without_positions_and_causal_mask_nothing_changes_but_the_order(
    blind: tuple[Opened, Reading], order: list[int]
) -> None:
    opened, found = blind
    assert len(found.tokens) == 7
    result = moved(opened, found, order, "none")
    assert result.largest < 1e-5
    for part in found.parts:
        before = result.before.weights(part.name, 0, 1)
        after = result.put_back(part.name, 0, 1)
        torch.testing.assert_close(after, before, atol=1e-5, rtol=0)


def test_every_scheme_of_positions_sees_the_order(made: Any, subtests: pytest.Subtests) -> None:
    for scheme in ["sinusoidal", "learned", "rotary", "relative", "alibi"]:
        with subtests.test(scheme=scheme):
            opened = made("encoder", scheme)
            found = reading.read(opened, TEXT)
            assert moved(opened, found, backwards(found), scheme).largest > 1e-3


def test_a_causal_mask_sees_the_order_without_positions(made: Any) -> None:
    opened = made("decoder", "none")
    found = reading.read(opened, TEXT)
    assert moved(opened, found, backwards(found), "none").largest > 1e-3


def test_taking_the_positions_away_makes_an_encoder_blind_to_the_order(made: Any) -> None:
    opened = made("encoder", "sinusoidal")
    found = reading.read(opened, TEXT)
    assert moved(opened, found, backwards(found), "sinusoidal").largest > 1e-3
    assert moved(opened, found, backwards(found), "none").largest < 1e-5


def test_the_same_order_changes_nothing(made: Any) -> None:
    opened = made("decoder", "rotary")
    found = reading.read(opened, TEXT)
    assert moved(opened, found, swapped(found, 2, 2), "rotary").largest < 1e-6


def test_special_tokens_stay_where_they_are(made: Any) -> None:
    found = reading.read(made("encoder", "none"), TEXT)
    order = backwards(found)
    assert order[0] == 0
    assert order[1:] == list(range(len(order) - 1, 0, -1))


# ---- longer than trained --------------------------------------------------------------


@grid(
    "scheme, kind",
    ["sinusoidal", "rotary", "relative", "alibi", "none"],
    ["encoder", "decoder", "encoder-decoder"],
)
def test_a_text_beyond_the_trained_length_is_really_passed(
    made: Any, kind: str, scheme: str
) -> None:
    opened = made(kind, scheme)
    found = reading.read(opened, TEXT)
    last = found.parts[-1].name
    result = longer(opened, found, 48, scheme, last, 0, 1)
    assert result.trained == 24
    assert len(result.looks_at) == 48
    assert (result.looks_at >= 1 - 1e-4).all()
    assert (result.looks_at <= 48 + 1e-3).all()
    assert (result.nats is not None) == (kind == "decoder")


def test_what_is_lost_on_each_token_is_the_loss_of_the_pass(made: Any) -> None:
    opened = made("decoder", "alibi")
    found = reading.read(opened, TEXT)
    result = longer(opened, found, 30, "alibi", "decoder.self_attn", 0, 0)
    ids = torch.tensor([[token.id for token in repeated(found.tokens, 30)]])
    with torch.no_grad():
        logits = in_scheme(opened, "alibi", 30).model(ids)
    expected = torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none")
    assert result.nats is not None
    torch.testing.assert_close(result.nats, expected, atol=1e-5, rtol=1e-5)


def test_a_repeated_text_is_as_long_as_asked_and_keeps_its_ends(
    made: Any, subtests: pytest.Subtests
) -> None:
    for length in [7, 8, 20, 33]:
        with subtests.test(length=length):
            tokens = reading.read(made("encoder-decoder", "none"), TEXT).tokens
            again = repeated(tokens, length)
            assert len(again) == length
            assert again[-1].special == tokens[-1].special
            assert [t.id for t in again[:6]] == [t.id for t in tokens[:6]]

"""The page of the whole pass without a browser: every stage of every model, and bad wishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library, reading
from explorer.analysis.pairs import strongest
from explorer.analysis.walk import stages_of
from explorer.analysis.walk_view import BETWEEN
from explorer.bench import walk
from explorer.components.spine import Bone, encode
from explorer.components.wire import unpack
from explorer.text import word_tokenizer
from explorer.text.labels import readable
from explorer.text.special import SOURCE
from models.presets import notebook_tutorial
from tests import apps, zoo
from tests.apps import said, views
from tests.shelf import NAMES, WORDS, put

pytestmark = pytest.mark.usefixtures("small_models")
PAGE = "look/walk"


def test_every_stage_of_every_kind_of_model(subtests: pytest.Subtests) -> None:
    for model in NAMES:
        with subtests.test(model=model):
            at = apps.page(PAGE, model=model)
            assert {"spine", "walk_tokens"} <= views(at)
            for stage in stages_of(library.open_model(model).config):
                at.session_state["_folded_walk"] = {"stage": stage.name}
                at.run()
                assert not at.exception, stage.name
                assert f"**{stage.title}**" in said(at)
                assert stage.kind == "tokens" or "walk_values" in views(at)
                assert not stage.site or f"`{stage.site}`" in said(at)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "classifier"])
def test_every_stage_of_published_models(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = getattr(zoo, name)(tmp_path / name)
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path))
    text = "5 17 3" if name == "gpt2" else "the cat was good"
    at = apps.page(PAGE, model=name, text=text)
    for stage in stages_of(library.opened_from(folder, name).config):
        at.session_state["_folded_walk"] = {"stage": stage.name}
        at.run()
        assert not at.exception, stage.name
        assert f"**{stage.title}**" in said(at)


def test_a_stage_that_this_model_does_not_have_is_said_and_replaced() -> None:
    at = apps.page(PAGE, model="letters", stage="encoder.0.resid_mid")
    assert "This model has no stage “encoder.0.resid_mid”; showing Tokens." in said(at)
    assert "walk_tokens" in views(at)


def test_a_token_that_is_not_there_is_said_and_replaced(subtests: pytest.Subtests) -> None:
    for wish in ["99", "-1", "x", "9" * 30]:
        with subtests.test(wish=wish):
            at = apps.page(PAGE, model="letters", stage="decoder.embed", decoder_token=wish)
            assert "There is no token" in said(at)
            assert "walk_values" in views(at)


def test_a_token_with_a_zero_before_it_is_there() -> None:
    at = apps.page(PAGE, model="letters", stage="decoder.embed", decoder_token="01")
    assert at.session_state["_folded_walk"]["decoder_token"] == "1"
    assert "There is no token" not in said(at)


def test_what_is_said_of_the_address_goes_when_it_is_no_longer_so() -> None:
    stage, vain = "decoder.embed", "There is no token “999” here"
    at = apps.page(PAGE, model="letters", stage=stage, decoder_token="999", number="x")
    assert vain in said(at)
    assert "There is no number “x” here" in said(at)
    at.selectbox(key="walk_numbers").select(1).run()
    assert vain in said(at)
    assert "There is no number" not in said(at)
    at.selectbox(key="walk_decoder_token").select(0).run()
    assert "There is no" not in said(at)


def test_another_text_or_model_ends_what_was_said_of_a_token(subtests: pytest.Subtests) -> None:
    for change in [{"text": "aab"}, {"model": "translation"}]:
        with subtests.test(change=change):
            at = apps.page(PAGE, model="letters", stage="decoder.0.mlp.out", decoder_token="999")
            assert "There is no token “999” here" in said(at)
            for key, value in change.items():
                at.session_state[key] = value
            at.run()
            assert not at.exception
            assert "999" not in said(at)


def test_a_vain_key_is_replaced_by_the_one_that_is_looked_at_most() -> None:
    stage = "decoder.1.self_attn.weights"
    at = apps.page(PAGE, model="letters", stage=stage, key_token="x", decoder_token="3")
    assert "There is no key “x” here; showing the one that is looked at most." in said(at)


def test_one_token_and_a_number_beyond_the_width() -> None:
    at = apps.page(PAGE, model="reverse", text="7", stage="encoder.embed", number="99999")
    assert "walk_values" in views(at)
    assert at.selectbox(key="walk_numbers").value == 1
    assert "There is no number 99,999 here, the last is 15: the first of those drawn is" in said(at)
    held = apps.page(PAGE, model="reverse", text="7", stage="encoder.embed", number="15")
    assert "There is no number" not in said(held)


def test_what_is_no_number_is_said(subtests: pytest.Subtests) -> None:
    for wish in ["x", "-1", "9" * 5000]:
        with subtests.test(wish=wish):
            at = apps.page(PAGE, model="letters", stage="decoder.embed", number=wish)
            assert "There is no number" in said(at)
            assert "walk_values" in views(at)


def test_a_link_to_a_stage_shows_its_layer_in_the_sidebar_at_once(
    subtests: pytest.Subtests,
) -> None:
    for layer in [0, 1]:
        with subtests.test(layer=layer):
            at = apps.page(PAGE, model="letters", stage=f"decoder.{layer}.mlp.hidden")
            assert at.segmented_control(key="layer").value == layer
            assert at.session_state["_folded_walk"]["stage"] == f"decoder.{layer}.mlp.hidden"
            at.segmented_control(key="layer").set_value(1 - layer).run()
            assert at.session_state["_folded_walk"]["stage"] == f"decoder.{1 - layer}.self_attn.q"


def test_the_held_number_is_opened_as_a_sum() -> None:
    at = apps.page(PAGE, model="letters", stage="decoder.0.mlp.out")
    (shown,) = (each.value for each in at.latex if r"\underbrace" in each.value)
    assert r"\text{ more}" in shown
    at.session_state["_folded_walk"] = {"stage": "decoder.0.resid_post"}
    at.run()
    assert not any(r"\underbrace" in each.value for each in at.latex)
    assert " + " in at.latex[1].value  # the stream and what is added, in numbers


def test_numbers_are_sent_in_single_precision() -> None:
    at = apps.page(PAGE, model="letters", stage="decoder.0.mlp.out")
    (view,) = (each for each in at.get("bidi_component") if each.key == "walk_values")
    header, planes = unpack(view.proto.bytes)
    rows, columns = header["shape"]
    assert len(planes["exact"]) == 4 * rows * columns


def test_a_token_and_numbers_are_chosen() -> None:
    at = apps.page(PAGE, model="letters", stage="decoder.embed")
    at.selectbox(key="walk_decoder_token").select(0).run()
    at.selectbox(key="walk_numbers").select(1).run()
    assert at.session_state["_folded_walk"]["decoder_token"] == "0"
    assert at.session_state["_folded_walk"]["number"] == "12"
    assert "4 of 16 numbers" in said(at)


def test_the_shapes_of_the_notebook_tutorial_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """d_model 512, 8 heads of 64, 10 tokens: a sentence of ten words."""
    words = word_tokenizer(WORDS, SOURCE)
    config = vars(notebook_tutorial(seq_length=64, num_layers=1)) | {"src_vocab_size": None}
    given = ("vocab_size", "pad_id", "bos_id", "eos_id")  # by the tokenizer
    text = "the black cat sleeps the white dog eats a"
    put(tmp_path, "tutorial", words, text, **{k: v for k, v in config.items() if k not in given})
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    shapes = {
        "encoder.embed": "batch 1 × tokens 10 → batch 1 × tokens 10 × d_model 512",
        "encoder.0.self_attn.q": "batch 1 × tokens 10 × heads·d_head 512 → batch 1 × tokens 10 × "
        "heads 8 × d_head 64 → batch 1 × heads 8 × tokens 10 × d_head 64",
        "encoder.0.self_attn.scores": "batch 1 × heads 8 × queries 10 × keys 10",
        "encoder.0.self_attn.concat": "heads 8 × d_head 64 → batch 1 × tokens 10 × "
        "heads·d_head 512",
    }
    at = apps.page(PAGE, model="tutorial")
    for stage, shape in shapes.items():
        at.session_state["_folded_walk"] = {"stage": stage}
        at.run()
        assert shape in said(at)


def test_the_sidebar_leads_to_the_same_stage_of_another_layer() -> None:
    at = apps.page(PAGE, model="letters", layer="0", stage="decoder.0.self_attn.weights")
    at.segmented_control(key="layer").set_value(1).run()
    assert at.session_state["_folded_walk"]["stage"] == "decoder.1.self_attn.weights"


def test_a_view_that_has_not_heard_of_the_new_layer_does_not_turn_back() -> None:
    """What it says of the sidebar is the layer before; the stage stays, the sidebar follows."""
    at = apps.page(PAGE, model="letters", stage="decoder.1.self_attn.weights")
    assert at.session_state["_walk_sidebar"] == ("letters", "decoder.self_attn", 1)
    at.session_state["layer"] = 0
    at.session_state[walk.choices.SPOKE] = True
    at.run()
    assert not at.exception
    assert at.session_state["_folded_walk"]["stage"] == "decoder.1.self_attn.weights"
    assert at.segmented_control(key="layer").value == 1


def test_sections_travel_with_their_stages() -> None:
    bones = [Bone("Embedding", ("Tokens",), ("",), (False,), 3.0, "3.00")]
    header, _ = unpack(encode(bones, "note", name="spine"))
    assert header["bones"][0]["stages"] == ["Tokens"]
    assert header["bones"][0]["share"] == 1.0
    assert walk.BRANCHES["mlp"] == "feed-forward"


def picture(at: AppTest) -> dict[str, Any]:
    (view,) = (each for each in at.get("bidi_component") if each.key == "walk_values")
    header, _ = unpack(view.proto.bytes)
    return header


def test_the_first_stage_shows_the_letters_and_the_number_of_each_token() -> None:
    at = apps.page(PAGE, model="letters")
    opened = library.open_model("letters")
    tokens = reading.read(opened, opened.example).target
    (table,) = at.dataframe
    assert list(table.value["its number"]) == [f"{token.id:,}" for token in tokens]
    letters = [readable(opened.example[token.start : token.end]) for token in tokens]
    shown = list(table.value["letters"])
    assert [one for one in shown if "added" not in one] == [one for one in letters if one]


def test_a_step_of_an_answer_is_called_by_what_it_reads_and_what_it_writes() -> None:
    at = apps.page(PAGE, model="translation", stage="decoder.0.cross_attn.weights")
    opened = library.open_model("translation")
    of = reading.read(opened, opened.example)
    both = [f"{a.label}{BETWEEN}{b.label}" for a, b in zip(of.target, of.written, strict=True)]
    assert picture(at)["rows"] == both
    assert picture(at)["words"]["row"] == "reads / writes"
    assert at.selectbox(key="walk_decoder_token").options[-1].endswith(both[-1])
    narrow = apps.page(PAGE, model="translation", stage="decoder.0.resid_post", decoder_token="0")
    assert picture(narrow)["rows"] == [token.label for token in of.target[:16]]
    assert picture(narrow)["words"]["row"] == "reads"


def test_classes_stand_in_the_order_of_the_answer() -> None:
    opened = library.open_model("reviews")
    guesses = reading.read(opened, opened.example).answer.guesses
    for stage in ("logits", "probabilities"):
        at = apps.page(PAGE, model="reviews", stage=stage)
        assert picture(at)["columns"] == [guess.label for guess in guesses]


def test_what_is_drawn_says_its_own_number() -> None:
    at = apps.page(PAGE, model="letters", stage="decoder.embed", number="14")
    assert picture(at)["places"][1] == [12, 13, 14, 15]


def test_the_held_pair_goes_to_the_other_pages_and_comes_back() -> None:
    at = apps.page(
        PAGE,
        model="translation",
        stage="decoder.0.cross_attn.weights",
        decoder_token="1",
        encoder_token="2",
    )
    assert at.session_state["_folded_held"]["held"] == "q1k2"
    assert (at.session_state["query"], at.session_state["key"]) == (1, 2)
    at.session_state["_folded_held"] = {"held": "q0k1"}
    at.run()
    kept = at.session_state["_folded_walk"]
    assert (kept["decoder_token"], kept["encoder_token"]) == ("0", "1")


def test_without_a_choice_the_key_is_the_one_that_is_looked_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(walk, "matrix", lambda *_, **how: drawn.update(how))
    opened = library.open_model("letters")
    of = reading.read(opened, opened.example)
    apps.page(PAGE, model="letters", stage="decoder.1.self_attn.weights", head="0")
    last = len(of.target) - 1
    assert drawn["held"] == (last, strongest(of, "decoder.self_attn", 1, 0, last))

"""The Compare page without a browser: every kind of other side, on every kind of model."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library
from explorer.bench.comparing import EDITED, HEAD, MODEL, SENTENCE, STEP
from explorer.edits import AblateHead, History
from explorer.edits_in_links import from_address, to_address
from explorer.runs.worker import work
from explorer.text import word_tokenizer
from explorer.text.literal import literal
from explorer.text.special import DECODER
from tests import apps, zoo
from tests.apps import said, taken, views
from tests.grids import grid
from tests.runs.making import tiny_run
from tests.shelf import NAMES, WORDS, put

MAPS = {"map_first", "map_second", "map_difference"}
KINDS = (HEAD, SENTENCE, MODEL, EDITED)


pytestmark = pytest.mark.usefixtures("small_models")


def page(compared_with: str = HEAD, **address: str) -> AppTest:
    return apps.page("change/compare", **{"with": compared_with, **address})


@grid("kind, model", KINDS, NAMES)
def test_every_kind_of_other_side_on_every_kind_of_model(model: str, kind: str) -> None:
    at = page(model=model, compared_with=kind)
    assert views(at) >= {"map_first", "map_second"}
    assert ("map_difference" in views(at)) != ("so there is no difference to show" in said(at))
    if kind != MODEL:
        assert views(at) >= MAPS


def test_a_head_beside_itself_has_a_difference_of_nothing() -> None:
    at = page(model="letters", layer="0", head="1", other_layer="0", other_head="1")
    assert "Both maps are over the same tokens. Their rows are 0 bits apart" in said(at)
    at.selectbox(key="other_head").set_value("2").run()
    assert not at.exception
    assert "Their rows are 0 bits apart" not in said(at)


def test_the_edits_of_the_address_stand_beside_the_pass_as_it_is() -> None:
    edit = AblateHead("decoder.self_attn", 0, 1)
    address = to_address(History((edit,), 1))
    at = page(model="letters", compared_with=EDITED, layer="1", edits=address)
    assert "Layer 0, head 1 to zero" in said(at)
    assert "Their rows are 0 bits apart" not in said(at)
    at.button(key="undo").click().run()
    assert not at.exception
    assert "Their rows are 0 bits apart" in said(at)


def test_steps_are_offered_where_they_lie_beside_the_model(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "runs")
    work(run.folder)
    at = page(model=run.name, text="cab", compared_with=STEP, part="Cross")
    assert views(at) >= MAPS, "the answer may be another one, but the rows are the same"
    steps = at.selectbox(key="other_step")
    assert steps.options == [str(step) for step, _ in run.snapshots()]
    assert "Their rows are 0 bits apart" not in said(at)
    steps.set_value(steps.options[-1]).run()
    assert not at.exception
    assert "Their rows are 0 bits apart" in said(at)
    other = page(model="letters", compared_with=STEP)
    assert f"has no “{STEP}” here; showing {HEAD}." in said(other)


def test_with_edits_a_model_that_writes_says_what_it_writes_now() -> None:
    edit = AblateHead("decoder.cross_attn", 0, 1)
    at = page(model="translation", compared_with=EDITED, edits=to_address(History((edit,), 1)))
    assert "After, it writes:" in said(at)
    assert not views(at) & {"answer_first", "answer_second"}, "the answer without edits is not its"
    at = page(model="translation", compared_with=SENTENCE, other_text="a white dog eats")
    assert views(at) >= {"answer_first", "answer_second"}


def test_steps_lie_beside_a_model_that_was_trained_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(tmp_path / "elsewhere")
    work(run.folder)
    monkeypatch.setenv("EXPLORER_MODELS", str(run.folder / "checkpoint"))
    at = page(compared_with=STEP, model="checkpoint", text="cab")
    assert at.selectbox(key="model").value == "checkpoint"
    assert at.selectbox(key="other_step").options[0] == "0"
    assert views(at) >= MAPS


def test_the_difference_is_taken_away() -> None:
    at = page(model="letters", layer="0", head="1", other_layer="0", other_head="2")
    assert not at.get("download_button")
    at.session_state["take_away"] = True
    at.run()
    assert not at.exception
    assert len(at.get("download_button")) == 6
    assert literal("Layer 0, head 2 − layer 0, head 1 of letters") in said(at)


def test_a_second_sentence_is_left_out_where_the_other_model_reads_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo.bert(tmp_path / "bert")
    zoo.gpt2(tmp_path / "gpt2")
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path))
    for other in ("reviews", "translation", "gpt2"):
        pair = (
            {"text": "1 2", "pair": "2 3"}
            if other == "gpt2"
            else {"text": "the cat", "pair": "a dog"}
        )
        at = page(compared_with=MODEL, model="bert", other_model=other, **pair)
        assert at.selectbox(key="model").value == "bert"
        assert "one text at a time" not in said(at)
        assert f"{other} reads one sentence: the second one is left out there." in said(at)
        assert views(at) >= {"map_first", "map_second"}
    zoo.bert(tmp_path / "another", seed=1)
    at = page(compared_with=MODEL, model="bert", other_model="another", text="the", pair="dog")
    assert views(at) >= MAPS, "a model that reads pairs reads this one"
    assert "left out" not in said(at)


def test_the_other_side_follows_what_is_chosen_until_somebody_chooses_there() -> None:
    at = page(model="letters", layer="0", head="1")
    at.segmented_control(key="layer").set_value(1).run()
    assert (at.selectbox(key="other_layer").value, at.selectbox(key="other_head").value) == (
        "1",
        "2",
    )
    at.segmented_control(key="head").set_value(2).run()
    assert at.selectbox(key="other_head").value == "3"
    at.selectbox(key="other_head").set_value("0").run()
    at.segmented_control(key="head").set_value(1).run()
    assert at.selectbox(key="other_head").value == "0"


def test_the_other_sentence_follows_yours_until_somebody_types_there() -> None:
    at = page(model="letters", compared_with=SENTENCE, text="the cat")
    at.text_input(key="text").set_value("the hat").run()
    assert at.text_input(key="other_text").value == "the hat"
    at.text_input(key="other_text").set_value("a cat").run()
    at.text_input(key="text").set_value("the dog").run()
    assert at.text_input(key="other_text").value == "a cat"
    assert not at.exception


def test_what_is_taken_away_says_what_was_edited_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    made = AblateHead("decoder.self_attn", 0, 1)
    undone, misfit = AblateHead("decoder.self_attn", 0, 2), AblateHead("decoder.self_attn", 9, 0)
    address = to_address(History((made, misfit, undone), 2))
    at = page(EDITED, model="letters", layer="1", edits=address)
    found = taken(at, monkeypatch).about
    assert found["edits of the second"] == "Layer 0, head 1 to zero"
    assert found["the same in an address"] == f"edits={to_address(History((made,), 1))}"
    assert from_address(to_address(History((made,), 1)))[0].made == (made,)


def test_what_is_taken_away_says_which_head_is_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(model="letters", layer="0", head="1", other_layer="1", other_head="3")
    found = taken(at, monkeypatch).about
    place = [found[f"{name} of the second"] for name in ("part", "layer", "head")]
    assert place == ["decoder.self_attn", "1", "3"]
    assert "edits of the second" not in found


def test_the_lines_to_paste_make_both_sides(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            edits = to_address(History((AblateHead("decoder.self_attn", 0, 1),), 1))
            at = page(kind, model="letters", layer="1", edits=edits)
            at.session_state["code"] = True
            at.run()
            assert not at.exception
            code = at.code[0].value
            assert "first = seen.weights('decoder.1.self_attn', head=" in code
            assert "second = seen.weights('" in code
            assert ("Scale(site='decoder.0.self_attn.head_out'" in code) == (kind == EDITED)


def test_rows_that_are_no_numbers_are_not_so_many_bits_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = word_tokenizer(WORDS, DECODER)
    put(tmp_path, "broken", words, "the cat sleeps", kind="decoder")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    named = dict(library.open_model("broken").model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))
    at = page(model="broken")
    assert "How far apart their rows are cannot be said: a weight is no number" in said(at)
    assert "no value" not in said(at)

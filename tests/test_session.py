"""What is chosen once: it follows, it is in the address, and nonsense in there is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.shelf import shelf

SHELL = str(Path(__file__).resolve().parent.parent / "explorer" / "shell.py")


pytestmark = pytest.mark.usefixtures("small_models")


def app(**address: str) -> AppTest:
    at = AppTest.from_file(SHELL, default_timeout=60)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run()


def chosen(at: AppTest) -> dict[str, Any]:
    return {key: at.session_state[key] for key in ("text", "model", "part", "layer", "head")}


def said(at: AppTest) -> list[str]:
    return [text.value for text in at.text if "showing" in text.value]


def test_the_address_chooses() -> None:
    at = app(model="letters", layer="1", head="3", text="a hat")
    assert not at.exception
    assert chosen(at) == {
        "text": "a hat",
        "model": "letters",
        "part": "decoder.self_attn",
        "layer": 1,
        "head": 3,
    }
    assert said(at) == []


def test_nonsense_in_the_address_is_said_once(subtests: pytest.Subtests) -> None:
    for address, sentence in [
        ({"head": "9"}, "Head “9” does not exist in this model; showing head"),
        ({"head": "banana"}, "Head “banana” does not exist in this model; showing head"),
        ({"layer": "-1"}, "Layer “-1” does not exist in this model; showing layer 0."),
        ({"model": "nothing"}, "There is no model “nothing” here; showing translation."),
        ({"model": "../x"}, "There is no model “../x” here; showing translation."),
        ({"part": "Sideways"}, "This model has no attention “Sideways”; showing Cross."),
        ({"model": "letters", "part": "Cross"}, "This model has no attention “Cross”"),
    ]:
        with subtests.test(address=address):
            at = app(**address)
            assert not at.exception
            (note,) = said(at)
            assert note.startswith(sentence)
            at.run()
            assert said(at) == [note], "it stays until something else is chosen"
            at.selectbox(key="model").set_value("reverse").run()
            assert said(at) == []


def test_nonsense_stays_what_it_is() -> None:
    at = app(model="![x](http://example.com/x.png)", head="<script>")
    assert not at.exception
    assert len(said(at)) == 2
    assert all("example.com" not in prose.value for prose in at.markdown)


def test_another_model_brings_its_example_unless_something_was_typed() -> None:
    at = app()
    at.selectbox(key="model").set_value("reverse").run()
    assert chosen(at)["text"] == "31415"
    at.text_input(key="text").set_value("2718").run()
    at.selectbox(key="model").set_value("letters").run()
    assert chosen(at)["text"] == "2718"
    assert not at.exception


def test_an_example_that_was_picked_is_no_typed_text() -> None:
    at = app()
    at.text_input(key="text").set_value("a white dog eats").run()
    at.selectbox(key="model").set_value("reverse").run()
    assert chosen(at)["text"] == "31415"


def test_another_model_starts_at_a_head_it_has() -> None:
    at = app(model="letters", layer="1", head="3")
    at.selectbox(key="model").set_value("reviews").run()
    assert not at.exception
    assert chosen(at)["part"] == "encoder.self_attn"
    assert chosen(at)["layer"] == 0
    assert chosen(at)["head"] in (0, 1)


def test_the_choice_follows_from_page_to_page() -> None:
    at = app(model="letters", layer="1", head="3", text="a hat")
    for page in ("tokens", "masks", "attention", "start"):
        at.switch_page(f"../pages/look/{page}.py").run()
        assert not at.exception
        assert chosen(at)["text"] == "a hat"
        assert chosen(at)["head"] == 3


def test_a_very_long_text_is_cut_and_said() -> None:
    at = app()
    at.text_input(key="text").set_value("cat " * 30_000).run()
    assert not at.exception
    assert len(chosen(at)["text"]) == 2_000
    assert "Your text had 120,000 characters; the first 2,000 are kept." in [
        text.value for text in at.text
    ]


def test_a_very_long_address_is_bounded() -> None:
    at = app(text="cat " * 30_000)
    assert not at.exception
    assert "The text in the address had 120,000 characters; the first 2,000 are kept." in [
        text.value for text in at.text
    ]
    assert any("this model reads at most" in text.value for text in at.text)


def test_a_text_with_more_tokens_than_fit_is_cut_only_when_told_to() -> None:
    at = app(model="letters", text="cat " * 30)
    sentence = "reads at most 24: shorten it to its first 91 characters."
    assert any(sentence in text.value for text in at.text)
    assert chosen(at)["text"] == "cat " * 30
    at.button(key="cut").click().run()
    assert not at.exception
    assert chosen(at)["text"] == ("cat " * 30)[:91]
    assert not any("reads at most" in text.value for text in at.text)
    assert "cut" not in [button.key for button in at.button]


def test_examples_of_others_are_shown_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shelf(tmp_path / "theirs")
    run = folder / "translation" / "run.json"
    examples = ["**b** ![x](/x.png)", ":smile: $x$", "line one\n  line two", "line one\nline two"]
    run.write_text(json.dumps({"example": "cat", "examples": examples}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    at = app()
    assert not at.exception
    menus: Any = at.get("menu_button")
    (menu,) = (each for each in menus if each.label == "Examples")
    shown = [option.replace("\u2060", "") for option in menu.proto.options]
    assert shown[:3] == ["cat", r"\*\*b\*\* \!\[x\]\(\/x\.png\)", r"\:smile\: \$x\$"]
    assert shown[3] == "line one line two"
    assert shown.count("line one line two") == 1

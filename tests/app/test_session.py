"""What is chosen once: it follows, it is in the address, and nonsense in there is said."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.testing.v1 import AppTest

from explorer.analysis.information_flow import information_flow, route
from explorer.app import bar
from explorer.app.context import open_first
from explorer.app.reader_models import NamedModels
from explorer.app.session import SESSION_KEY
from explorer.catalog.folders import model_name
from explorer.catalog.opened_model import open_model
from explorer.inference.forward_pass import run_text
from tests import apps
from tests.apps import FIRST, said
from tests.views.drawing import PAGES, path_of

pytestmark = pytest.mark.usefixtures("small_models")


def app(**address: str) -> AppTest:
    return apps.page(FIRST, **address)


def chosen(at: AppTest) -> dict[str, Any]:
    return {key: at.session_state[key] for key in ("text", "model", "part", "layer", "head")}


def notes(at: AppTest) -> list[str]:
    return [text.value for text in at.text if "showing" in text.value]


def test_the_address_chooses_and_the_choice_follows_from_page_to_page() -> None:
    at = app(model="letters", layer="1", head="3", text="a hat")
    look = {"part": "decoder.self_attn", "layer": 1, "head": 3}
    assert chosen(at) == {"text": "a hat", "model": "letters", **look}
    assert notes(at) == []
    for page in ("masks", "attention"):
        apps.run(at.switch_page(f"../../pages/attention/{page}.py"))
        assert chosen(at) == {"text": "a hat", "model": "letters", **look}
    apps.run(at.selectbox(key="model").set_value("reviews"))
    assert chosen(at)["part"] == "encoder.self_attn"
    assert (chosen(at)["layer"], chosen(at)["head"] in (0, 1)) == (0, True)


def test_the_head_is_of_the_strongest_edge_until_one_is_chosen_or_named_by_a_link() -> None:
    at, opened = app(model="letters"), open_model("letters")
    for text, expected in ("a hat", (1, 0)), ("the hat sat", (1, 2)), ("that cat sat", (0, 0)):
        apps.run(at.text_input(key="text").set_value(text))
        flow = information_flow(run_text(opened, text))
        edges = route(flow, flow.starts[-1]).edges["decoder.self_attn"]
        some = [place for place in edges.nonzero().tolist() if 0 < place[2] != place[1]]
        layer, *cell = max(some, key=lambda place: float(edges[tuple(place)]))
        heads = flow.stacks["decoder"][layer].attentions["decoder.self_attn"].heads
        assert (layer, int(heads[tuple(cell)])) == expected
        assert (chosen(at)["layer"], chosen(at)["head"]) == expected
    at.selectbox(key="head").set_value(3).run()
    for each, head in (at, 3), (app(model="letters", text="a hat", layer="1", head="0"), 0):
        assert chosen(apps.run(each.text_input("text").set_value("the hat sat")))["head"] == head


NONSENSE: list[tuple[dict[str, str], str]] = [
    ({"head": "<script>"}, "“Head” has no “<script>” in this model; showing"),
    ({"layer": "-1"}, "“Layer” has no “-1” in this model; showing 0."),
    ({"model": "![x](http://x/x.png)"}, "There is no model “![x](http://x/x.png)” here"),
    ({"model": bar.MORE_MODELS}, "There is no model “More models” here; showing translation."),
    ({"model": "letters", "part": "Cross"}, "“Attention” has no “Cross” in this model"),
]


def test_nonsense_in_the_address_is_said_until_another_is_chosen() -> None:
    for address, sentence in NONSENSE:
        at = app(**address)
        (note,) = notes(at)
        assert note.startswith(sentence)
        assert all("x.png" not in prose.value for prose in at.markdown), address
    at.run()
    assert notes(at) == [note]
    at.selectbox(key="model").set_value("reverse").run()
    assert notes(at) == []


def test_another_model_brings_its_example_unless_something_was_typed() -> None:
    at = app()
    at.text_input(key="text").set_value("a white dog eats").run()  # another of its examples
    at.selectbox(key="model").set_value("reverse").run()
    assert chosen(at)["text"] == "31415"
    at.text_input(key="text").set_value("2718").run()
    apps.run(at.selectbox(key="model").set_value("letters"))
    assert chosen(at)["text"] == "2718"


def test_what_is_too_long_is_cut_and_said() -> None:
    at = apps.run(app().text_input(key="text").set_value("cat " * 30_000))
    assert len(chosen(at)["text"]) == 20_000
    assert "Your text has 120,000 characters; only the first 20,000 char" in said(at)
    assert "this model reads at most" in said(at)


def test_a_text_with_more_tokens_than_fit_is_cut_only_when_told_to() -> None:
    at = app(model="letters", text="cat " * 30)
    assert "reads at most 24: shorten it to its first 91 characters." in said(at)
    assert chosen(at)["text"] == "cat " * 30
    apps.run(at.button(key="cut").click())
    assert chosen(at)["text"] == ("cat " * 30)[:91]
    assert not any("reads at most" in text.value for text in at.text)
    assert "cut" not in [button.key for button in at.button]


def test_the_list_has_the_name_of_an_upload_and_the_address_its_key(
    small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    names = []
    for key in ("1" * 24, "2" * 24):
        folder = tmp_path / ".uploads" / f"upload-{key}" / "mine"
        shutil.copytree(small_models / "letters", folder)
        names.append(model_name(folder))
    at = app(model=names[0])
    at.session_state[SESSION_KEY].state(NamedModels).folders.append(folder)
    models = at.run().selectbox(key="model")
    assert [models.options[0], models.options[1], models.value] == ["mine", "mine (2)", names[0]]
    assert at.query_params["model"] == names[0]
    apps.run(models.set_value(names[1]))
    assert at.query_params["model"] == names[1]
    at.selectbox(key="model").set_value("translation").run()
    assert "model" not in at.query_params


def test_examples_of_others_are_shown_as_they_are_written(
    small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(small_models, tmp_path / "theirs")
    examples = ["**b** ![x](/x.png)", ":smile: $x$", "line one\n  line two", "line one\nline two"]
    record = {"example": "cat", "examples": examples}
    (tmp_path / "theirs" / "translation" / "run.json").write_text(json.dumps(record))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "theirs"))
    menus: Any = app().get("menu_button")
    (menu,) = (each for each in menus if each.label == "Examples")
    shown = [option.replace("\u2060", "") for option in menu.proto.options]
    assert shown[:3] == ["cat", r"\*\*b\*\* \!\[x\]\(\/x\.png\)", r"\:smile\: \$x\$"]
    assert shown[3] == "line one line two"
    assert shown.count("line one line two") == 1


def test_warming_up_asks_for_no_reader(caplog: pytest.LogCaptureFixture) -> None:
    """Else Streamlit says four times at every start that a reader is missing."""
    log = logging.getLogger(script_run_context.__name__)
    log.addHandler(caplog.handler)
    with caplog.at_level(logging.WARNING, log.name):
        open_first()
    log.removeHandler(caplog.handler)
    assert caplog.messages == []


def test_a_sentence_that_a_model_does_not_read_is_read_by_another_after_one_click() -> None:
    """Words that it does not know are said under the bar alone."""
    sentence = "Not in this model's vocabulary, so read as <unk>: “fox”."
    long = "the cat and the hat the cat"
    for page, model, text, unread in (
        ("overview/overview", "translation", "the fox", 1),
        ("input/tokens", "translation", "the fox", 1),
        ("input/tokens", "reverse", long, 0),
    ):
        at = apps.page(page, model=model, text=text, layer="0")
        assert [each.value for each in at.text].count(sentence) == unread
        assert ("cut" in [button.key for button in at.button]) is (text == long)
        assert ("It knows 19 words: try “" in str(at.button)) is bool(unread)
        apps.run(at.button(key="suggested_model").click())
        assert (chosen(at)["model"], chosen(at)["text"]) == ("letters", text)
        assert sentence not in [each.value for each in at.text]
        assert "suggested_model" not in [button.key for button in at.button]


WITHOUT_MODEL: tuple[str, ...] = ("training/training", "training/inside_training", "training/runs")
WITHOUT_MODEL += ("input/tokenizer_training", "attention/masks")
"""Pages that open none of the list, so their bar has none, or an example that needs none."""


def test_a_page_runs_alone_and_without_any_model_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "nothing"))
    for path in map(path_of, PAGES):
        with subtests.test(path=path):
            at = apps.page_alone(path)
            assert len(at.title) == 1
            times = said(at).count("There is no trained model here yet")
            assert times == (path not in WITHOUT_MODEL)

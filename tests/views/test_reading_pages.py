"""Logit lens, writing and export without a browser, on every kind of model."""

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog import opened_model
from explorer.inference.answers import class_names
from explorer.inference.forward_pass import run_text
from explorer.text.visible_text import literal
from explorer.views.shared.widgets import bold_title
from tests.apps import page, said
from tests.tiny import NAMES
from tests.views.drawing import put_state, sent

pytestmark = pytest.mark.usefixtures("small_models")


def likeliest(at: AppTest) -> list[str]:
    """The first column of the table of the lens, without the chances."""
    return [str(cell).rsplit("  ", 1)[0] for cell in at.dataframe[0].value["1."]]


def test_the_lens_has_a_row_for_every_layer_and_ends_in_the_answer() -> None:
    for model in NAMES:
        at, opened = page("forward_pass/logit_lens", model=model), opened_model.open_model(model)
        found = likeliest(at)
        assert len(found) == opened.config.n_layers + 1
        assert f"**Output: {literal(found[-1])}**" in said(at)
        if model == "letters":
            before = at.dataframe[0].value.to_dict()
            start = sent(at, "lens")[0]["rows"][-1]
            assert (start["name"], start["cells"][-1][0]) == ("start", found[0])
            at.selectbox(key="expected_at").set_value(0).run()
            assert at.dataframe[0].value.to_dict() != before, "another place has another lens"
        if model == "reviews":
            best = int(run_text(opened, opened.example).trace.output[0].argmax())
            assert found[-1] == class_names(opened)[best]


def test_nothing_is_made_before_it_is_asked_for() -> None:
    at = page("attention/attention", model="letters")
    assert not at.get("download_button")
    put_state(at, export=True)
    ways = [button.key for button in at.get("download_button")]
    assert ways == [f"export_{way}" for way in ("png", "svg", "pdf", "csv", "json", "npz", "html")]
    assert ", head " in at.selectbox(key="export_figure").options[0]


def test_the_tokens_of_an_emoji_are_shown_as_its_parts(shipped_models: None) -> None:
    parts = [f"😀 {place}/4 <0x{byte}>" for place, byte in enumerate(("F0", "9F", "98", "80"), 1)]
    asked = {"model": "shakespeare", "text": "Oh 😀!"}
    for path, key, names in [
        ("input/tokens", "tokens_read", ("labels",)),
        ("overview/overview", "start_head", ("rows", "columns")),
        ("attention/attention", "attention_head", ("rows", "columns")),
        ("attention/head_steps", "stages", ("rows", "columns")),
        ("experiments/interventions", "map_before", ("rows", "columns")),
    ]:
        header, _ = sent(page(path, **asked), key)
        assert all([label for label in header[name] if "😀" in label] == parts for name in names)
    header, _ = sent(page("input/tokens", **asked), "tokens_read")
    assert [group[2] for group in header["groups"]] == ["😀"]


def test_a_title_is_literal_wherever_the_model_stands_in_it() -> None:
    model, long = "_m_ [x](y)", "m" * 255
    of_head = " · Encoder self-attention · Layer 0, head 1"
    assert bold_title(f"{model}{of_head}") == f"**{literal(model)}{of_head}**"
    assert bold_title(f"Loss of {model}") == f"**Loss of {literal(model)}**"
    assert bold_title(f"{long}{of_head}") == f"**{long}{of_head}**", "no part of it is cut"

"""Logit lens, writing and taking away without a browser, on every kind of model."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library
from explorer.answers import class_names
from explorer.bench.growing import USUAL_LENGTH
from explorer.reading import read
from explorer.text.literal import literal
from explorer.writing import MOST_WRITTEN
from tests.apps import page, said, views
from tests.shelf import NAMES

pytestmark = pytest.mark.usefixtures("small_models")

WRITES = ("letters", "translation")
WAYS = ("png", "svg", "csv", "json", "npz", "html")


def likeliest(at: AppTest) -> list[str]:
    """The first column of the table of the lens, without the chances."""
    return [str(cell).rsplit("  ", 1)[0] for cell in at.dataframe[0].value["1."]]


def test_the_lens_has_a_row_for_every_layer_and_ends_in_the_answer(
    subtests: pytest.Subtests,
) -> None:
    for model in NAMES:
        with subtests.test(model=model):
            at = page("look/lens", model=model)
            config = library.open_model(model).config
            found = likeliest(at)
            assert len(found) == config.n_layers + 1
            assert f"**The answer: {literal(found[-1])}**" in said(at)


def test_the_lens_of_a_classifier_ends_in_its_class() -> None:
    opened = library.open_model("reviews")
    reading = read(opened, "not a cat")
    best = int(reading.trace.output[0].argmax())
    at = page("look/lens", model="reviews", text="not a cat")
    assert likeliest(at)[-1] == class_names(opened)[best]


def test_another_place_has_another_lens() -> None:
    at = page("look/lens", model="letters", text="the cat and the hat")
    before = at.dataframe[0].value.to_dict()
    at.selectbox(key="expected_at").set_value(1).run()
    assert not at.exception
    assert at.dataframe[0].value.to_dict() != before


def test_what_is_written_grows_by_a_token_a_step(subtests: pytest.Subtests) -> None:
    for model in WRITES:
        with subtests.test(model=model):
            at = page("look/writing", model=model, length="3")
            assert {"written_tokens", "written_head"} <= views(at)
            assert "the first of them is written" in said(at)
            slider = at.slider(key="written")
            slider.set_value(slider.max).run()
            assert not at.exception
            assert "**All is written**" in said(at)
            assert ("Cut after" in said(at)) != ("The last token ends the text." in said(at))


def test_a_model_that_only_reads_says_so(subtests: pytest.Subtests) -> None:
    for model in [name for name in NAMES if name not in WRITES]:
        with subtests.test(model=model):
            at = page("look/writing", model=model)
            assert "This model only reads: choose one that writes" in said(at)
            assert "written_head" not in views(at)


def test_nothing_is_made_before_it_is_asked_for(subtests: pytest.Subtests) -> None:
    for model in NAMES:
        with subtests.test(model=model):
            at = page("look/attention", model=model)
            assert not at.get("download_button")
            at.session_state["take_away"] = True
            at.run()
            assert not at.exception
            assert [button.key for button in at.get("download_button")] == [
                f"take_{way}" for way in WAYS
            ]
            assert f" of {model}" in said(at)


@pytest.mark.parametrize(
    ("path", "more"), [("look/writing", {}), ("look/decoding", {"way": "Beam search"})]
)
@pytest.mark.parametrize("wish", ["999", "0", "x"])
def test_a_length_that_cannot_be_written_is_said(
    path: str, more: dict[str, str], wish: str
) -> None:
    at = page(path, model="letters", length=wish, **more)
    note = f"“Tokens to write” goes from 1 to {MOST_WRITTEN:,}, not “{wish}”; it is {USUAL_LENGTH}."
    assert note in said(at)
    at.slider(key="length").set_value(5).run()
    assert "Tokens to write” goes" not in said(at)

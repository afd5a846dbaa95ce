"""The page “Embedding space” without a browser, on every kind of model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.embedding_space import principal_axes
from explorer.catalog import opened_model
from explorer.text.number_format import percent
from tests import apps
from tests.apps import said
from tests.tiny import save_model

pytestmark = pytest.mark.usefixtures("small_models")


def page(model: str, **address: str) -> AppTest:
    return apps.page("input/embedding_space", model=model, **address)


def chart(at: AppTest) -> dict[str, Any]:
    (drawn,) = at.get("plotly_chart")
    found: dict[str, Any] = json.loads(drawn.proto.spec)
    return found


def column(at: AppTest, name: str) -> list[Any]:
    return next(list(each.value[name]) for each in at.dataframe if name in each.value.columns)


def test_another_token_of_the_text_has_other_neighbours_and_the_same_chart() -> None:
    at = page("letters")
    table = opened_model.open_model("letters").model.last_stack.embedding.weight
    held = percent(sum(principal_axes(table).shares[:2]))
    assert f"picture keeps {held} of the differences" in said(at)
    apps.run(at.toggle(key="in_3d").set_value(True))
    before, spec = list(column(at, "cosine similarity")), chart(at)
    apps.run(at.selectbox(key="near").set_value(2))
    assert list(column(at, "cosine similarity")) != before
    assert chart(at) == spec, "so the browser leaves it where it is"


def test_a_stack_is_that_of_the_chosen_attention_until_one_is_chosen() -> None:
    for part, stack in [("Cross", "Encoder"), ("Decoder", "Decoder")]:
        at = page("translation", part=part, in_3d="true")
        assert at.session_state["of_stack"] == stack
        read = {"Encoder": "sleeps", "Decoder": "<s>"}[stack]
        assert read in chart(at)["data"][3]["text"]
        options = at.segmented_control(key="space_of").options
        assert ("Unembedding" in options) == (stack == "Decoder")
    assert not [each for each in page("letters").segmented_control if each.key == "of_stack"]


def test_an_embedding_that_is_not_finite_or_without_a_direction(own_models: Path) -> None:
    for name in ("broken", "padded"):
        save_model(own_models, name)
    weights = dict(opened_model.open_model("broken").model.named_parameters())
    weights["decoder.embedding.weight"].data[0, 0] = torch.nan
    at = page("broken")
    assert "NaN or infinite values" in said(at)
    assert not at.get("vega_lite_chart")
    assert column(at, "cosine similarity"), "the other tokens still have neighbours"
    opened_model.open_model("padded").model.last_stack.embedding.weight.data[1:] = 0
    at = page("padded")
    assert at.get("vega_lite_chart")
    assert column(at, "cosine similarity") == [], "a row without a direction is no neighbour"

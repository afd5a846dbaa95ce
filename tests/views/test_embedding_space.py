"""The page “Embedding space” without a browser, on every kind of model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor, nn

from explorer.analysis import embedding_space
from explorer.catalog import opened_model
from explorer.inference import results_cache
from explorer.inference.forward_pass import run_text
from explorer.text.number_format import three
from tests import apps
from tests.apps import said
from tests.views.drawing import put_state, words_model

MODELS = ("translation", "letters", "reviews", "reverse", "bert", "gpt2", "t5")
WITHOUT_UNEMBEDDING = ("reviews",)
AXES = {"EMBEDDING": "Token embedding", "STREAM": "Residual stream", "UNEMBEDDING": "Unembedding"}


@pytest.fixture(autouse=True)
def _shelf(small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))


def page(model: str, **address: str) -> AppTest:
    return apps.page("input/embedding_space", model=model, **address)


def chart(at: AppTest) -> dict[str, Any]:
    (drawn,) = at.get("plotly_chart")
    found: dict[str, Any] = json.loads(drawn.proto.spec)
    return found


def places(trace: dict[str, Any]) -> Tensor:
    return torch.tensor([trace[axis] for axis in "xyz"], dtype=torch.float64).T


def column(at: AppTest, name: str) -> list[Any]:
    return next(list(each.value[name]) for each in at.dataframe if name in each.value.columns)


def unit(vectors: Tensor) -> Tensor:
    return nn.functional.normalize(vectors.detach().double(), dim=-1)


def components(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and directions of the vectors at length one, by torch's own decomposition."""
    units = unit(vectors.flatten(0, -2))
    mean = units.mean(0)
    directions = torch.linalg.svd(units - mean, full_matrices=False)[2][:3].T
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return mean, nn.functional.pad(directions * largest.sign(), (0, 3 - directions.shape[1]))


@pytest.mark.parametrize("model", MODELS)
def test_every_token_is_where_plain_torch_puts_it(model: str) -> None:
    opened = opened_model.open_model(model)
    passed = run_text(opened, opened.example)
    for stack in opened.config.stacks:
        tokens = passed.source if stack == "encoder" else passed.target
        part = getattr(opened.model, stack)
        ids = [token.id for token in tokens]
        names = [
            f"{stack}.0.resid_pre",
            *(f"{stack}.{n}.resid_post" for n in range(len(part.blocks))),
        ]
        embedded = (part.embedding.weight * part.embedding_scale)[ids]
        states = [embedded, *(passed.trace[name][0] for name in names)]
        if torch.equal(states[0], states[1]):
            del states[1]
        drawn = slice(0, 24) if stack == "encoder" else slice(-24, None)
        stream = torch.stack(states).detach()[:, drawn]
        rows = {"Token embedding": part.embedding.weight, "Residual stream": stream}
        moved = dict.fromkeys(rows, stream)
        if stack == opened.config.stacks[-1] and model not in WITHOUT_UNEMBEDDING:
            head: Any = opened.model.head
            own = head.weight
            rows["Unembedding"] = part.embedding.weight if own is None else own
            moved["Unembedding"] = head.transform(part.norm(stream))
        for axes, table in rows.items():
            at = page(model, space_of=axes, of_stack=stack.capitalize())
            assert at.session_state["space_of"] == axes
            mean, directions = components(table)
            expected = (unit(moved[axes]) - mean) @ directions
            spec = chart(at)
            first = places(spec["data"][3])
            torch.testing.assert_close(first, expected[0], atol=1e-4, rtol=0)
            steps = {int(each["name"]): each for each in spec["frames"] if each["name"].isdecimal()}
            assert list(steps) == list(range(len(stream)))
            for step, frame in steps.items():
                seen = places(frame["data"][1])
                torch.testing.assert_close(seen, expected[step], atol=1e-4, rtol=0)


@pytest.mark.parametrize("model", MODELS)
def test_neighbours_are_the_largest_cosines_of_each_matrix(model: str) -> None:
    opened = opened_model.open_model(model)
    at = page(model)
    stack = opened.model.last_stack
    own = getattr(opened.model.head, "weight", None)
    is_tied = hasattr(opened.model.head, "weight") and own is None
    tables = [stack.embedding.weight, *([own] if own is not None else [])]
    cosines = [each.value for each in at.dataframe if "cosine similarity" in each.value.columns]
    assert len(cosines) == len(tables)
    assert ("(tied)" in said(at)) == is_tied
    tokens = run_text(opened, opened.example).tokens if len(opened.config.stacks) == 1 else ()
    for table, shown in zip(tables, cosines, strict=True):
        assert len(shown) == (10 if len(tables) == 1 else 5)
        if not tokens:
            continue
        chosen = tokens[int(str(at.selectbox(key="near").value))].id
        every = unit(table) @ unit(table[chosen])
        every[chosen] = -1
        best = every.nan_to_num(-1).topk(len(shown))
        assert list(shown["cosine similarity"]) == [three(float(each)) for each in best.values]
        labels = [opened.tokenizer.label(int(each)) for each in best.indices]
        assert [str(each)[-1] for each in shown["token"]] == [each[-1] for each in labels]


def test_a_typed_token_is_looked_up_and_more_than_one_is_named() -> None:
    at = page("letters", near_text="zq")
    text = said(at)
    assert "“zq” is 3 tokens here: “␣”, “z”, “q”." in text
    assert "Type one." in text
    at = page("translation", near_text="dog")
    assert "“dog” in the token embedding" in said(at)
    at = page("translation", near_text="zebra")
    assert "“zebra” is not in this model's vocabulary." in said(at)


def test_another_token_of_the_text_has_other_neighbours_and_the_same_chart() -> None:
    at = page("letters")
    before, spec = list(column(at, "cosine similarity")), chart(at)
    at.selectbox(key="near").set_value(1).run()
    assert not at.exception
    assert list(column(at, "cosine similarity")) != before
    assert chart(at) == spec, "so the browser leaves it where it is"


def test_a_stack_is_that_of_the_chosen_attention_until_one_is_chosen() -> None:
    for part, stack in [("Encoder", "Encoder"), ("Cross", "Decoder")]:
        at = page("translation", part=part)
        assert at.session_state["of_stack"] == stack
        read = {"Encoder": "sleeps", "Decoder": "<s>"}[stack]
        assert read in chart(at)["data"][3]["text"]
        options = at.segmented_control(key="space_of").options
        assert ("Unembedding" in options) == (stack == "Decoder")
    assert not [each for each in page("letters").segmented_control if each.key == "of_stack"]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tokens are drawn" not in said(page("reviews"))
    for name in ("letters", "reviews"):
        results_cache.forget(opened_model.open_model(name))
    monkeypatch.setattr(embedding_space, "MOST_SAMPLED", 20)
    monkeypatch.setattr("explorer.views.embedding_space.shown_space.MOST_TOKENS", 4)
    monkeypatch.setattr("explorer.views.embedding_space.moving_tokens.MOST_TOKENS", 4)
    monkeypatch.setattr("explorer.analysis.principal_components.WORK", 100 * 16**2)
    at = page("letters", text="the hat and the cat")
    assert "Grey is the vocabulary: 20 of 269 tokens, sampled with seed 0." in said(at)
    assert "The components are computed from 100 of 269 vectors." in said(at)
    assert "The last 4 of your 6 tokens are drawn." in said(at)
    spec = chart(at)
    assert (len(spec["data"][0]["x"]), len(spec["data"][3]["x"])) == (20, 4)
    at = page("reviews", text="the cat does not sleeps")
    assert "The first 4 of your 6 tokens are drawn." in said(at)


def test_an_embedding_that_is_not_finite_has_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_model(tmp_path, "broken")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    weights = dict(opened_model.open_model("broken").model.named_parameters())
    weights["decoder.embedding.weight"].data[0, 0] = torch.nan
    at = page("broken")
    assert "NaN or infinite values" in said(at)
    assert not at.get("plotly_chart")
    assert column(at, "cosine similarity"), "the other tokens still have neighbours"


def test_a_row_without_a_direction_is_nobody_s_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_model(tmp_path, "padded")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    opened = opened_model.open_model("padded")
    opened.model.last_stack.embedding.weight.data[1:] = 0
    at = page("padded")
    assert put_state(at).get("plotly_chart")
    assert column(at, "cosine similarity") == []

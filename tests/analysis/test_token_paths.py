"""The vectors of a text's tokens at every step, from the recorded pass, and as the head reads."""

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis.embedding_space import embedding_space
from explorer.analysis.nearest_tokens import nearest_tokens
from explorer.analysis.principal_components import principal_axes
from explorer.analysis.token_paths import as_read, is_tied, token_paths, unembedding
from explorer.catalog.opened_model import open_model
from explorer.inference.forward_pass import run_text

MODELS = ("translation", "letters", "reviews", "bert", "gpt2", "t5")


@pytest.fixture(autouse=True)
def _shelf(small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))


@pytest.mark.parametrize("name", MODELS)
def test_a_path_begins_at_the_embedding_and_ends_where_the_head_reads(name: str) -> None:
    opened = open_model(name)
    forward = run_text(opened, opened.example)
    for stack in opened.config.stacks:
        tokens = forward.source if stack == "encoder" else forward.target
        places = range(len(tokens))
        part = getattr(opened.model, stack)
        found = token_paths(forward, stack, places)
        assert found.steps[0] == "embedding"
        assert found.steps[-1] == f"after layer {len(part.blocks) - 1}"
        assert len(found.steps) == len(found.states) == len(set(found.steps))
        ids = torch.tensor([token.id for token in tokens])
        torch.testing.assert_close(found.states[0], part.embedding(ids) * part.embedding_scale)
        last = forward.trace[f"{stack}.{len(part.blocks) - 1}.resid_post"][0]
        torch.testing.assert_close(found.states[-1], last)
        some = token_paths(forward, stack, places[-1:])
        torch.testing.assert_close(some.states, found.states[:, -1:])


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_times_the_unembedding_gives_the_logits(name: str) -> None:
    opened = open_model(name)
    forward = run_text(opened, opened.example)
    model, stack = opened.model, opened.config.stacks[-1]
    rows = unembedding(model)
    if name == "reviews":
        assert rows is None, "a classifier scores no token"
        assert not is_tied(model)
        return
    assert rows is not None
    assert is_tied(model) == (rows is model.last_stack.embedding.weight)
    tokens = forward.source if stack == "encoder" else forward.target
    read = as_read(model, token_paths(forward, stack, range(len(tokens))))
    head: Any = model.head
    products = read.states[-1] @ rows.T * head.scale
    logits = products if head.bias is None else products + head.bias
    last = forward.trace[f"{stack}.{len(model.last_stack.blocks) - 1}.resid_post"]
    expected = model.read(model.last_stack.norm(last))[0]
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-4)


def test_what_enters_the_first_layer_is_a_step_only_where_it_is_another() -> None:
    steps = {}
    for name in ("letters", "t5"):
        opened = open_model(name)
        steps[name] = token_paths(run_text(opened, opened.example), "decoder", range(1)).steps
    assert steps["letters"][:2] == ("embedding", "into layer 0"), "positions were added"
    assert steps["t5"][:2] == ("embedding", "after layer 0"), "positions are biases"


def test_a_space_has_a_place_for_every_token_it_names() -> None:
    opened = open_model("letters")
    paths = token_paths(run_text(opened, opened.example), "decoder", range(3))
    table = opened.model.last_stack.embedding.weight
    axes = principal_axes(table)
    flat = nearest_tokens(table, paths.states.flatten(0, 1), 2)
    size = (*paths.states.shape[:2], 2)
    near = type(flat)(flat.ids.view(size), flat.cosines.view(size))
    found = embedding_space(table, axes, paths, near)
    assert found.places.shape == (*paths.states.shape[:2], 3)
    assert len(set(found.vocabulary)) == len(found.vocabulary) == len(found.around)
    assert {*near.ids.flatten().tolist(), *range(found.sampled)} <= set(found.vocabulary)
    torch.testing.assert_close(found.around, axes.places(table[list(found.vocabulary)]))
    torch.testing.assert_close(found.places[0], axes.places(table[list(paths.ids)]))
    assert found.shares[0] == axes.share_of(paths.states[0])

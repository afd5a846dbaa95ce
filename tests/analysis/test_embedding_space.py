"""Vectors of tokens at every step: their neighbours, principal components and paths."""

from typing import Any

import pytest
import torch

from explorer.analysis import embedding_space as module
from explorer.analysis.embedding_space import (
    as_read,
    embedding_space,
    is_tied,
    nearest_by_part,
    nearest_tokens,
    parts_of,
    principal_axes,
    rows_measured,
    sample_rows,
    token_paths,
    unembedding,
)
from explorer.catalog.opened_model import open_model
from explorer.inference.forward_pass import run_text
from tests.closeness import assert_close_to

pytestmark = pytest.mark.usefixtures("small_models", "published_models")


def noise(*size: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def test_the_nearest_are_those_with_the_largest_cosine_and_not_the_token_itself() -> None:
    values = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    found = nearest_tokens(values, values[[0, 4]], 2, torch.tensor([0, 4]))
    assert found.ids[0].tolist() == [1, 2]
    assert found.pairs(0)[0][1] == pytest.approx(2 / (4.01**0.5))
    with_itself = nearest_tokens(values, values[:1], 9)
    assert [token for token, _ in with_itself.pairs(0)] == [0, 1, 2, 3], "a zero is near nothing"


@pytest.mark.parametrize("chunk", [7, 16_384])
def test_parts_of_a_table_give_the_same_as_all(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    values, asked = noise(60, 8), noise(5, 8, seed=2)
    cosines = torch.nn.functional.cosine_similarity(asked[:, None], values[None], dim=-1)
    cosines[0, 40] = -torch.inf
    best = cosines.topk(4, 1)
    but = torch.tensor([40, -1, -1, -1, -1])
    *_, found = steps = list(nearest_by_part(values, asked, 4, but))
    assert len(steps) == parts_of(values)
    assert found.ids.tolist() == best.indices.tolist()
    assert_close_to(found.cosines, best.values)


def test_large_or_missing_values_are_near_what_they_point_at_or_nothing() -> None:
    values = noise(20, 8)
    asked = torch.stack([1e30 * values[7], torch.full((8,), torch.nan), torch.zeros(8)])
    found = nearest_tokens(values, asked, 3)
    assert found.pairs(0)[0][0] == 7
    assert found.pairs(1) == found.pairs(2) == []
    found = nearest_tokens(values.bfloat16(), values[[3]].bfloat16(), 3)
    assert found.cosines.dtype == torch.float32
    assert found.ids[0, 0] == 3


def table(rows: int = 60, width: int = 8) -> torch.Tensor:
    return noise(rows, width) * torch.linspace(3, 0.1, width) + 1


@pytest.mark.parametrize("size", [(60, 8), (8, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("in_double", [True, False])
def test_axes_are_those_of_the_singular_value_decomposition(
    size: tuple[int, int], in_double: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_double:
        monkeypatch.setattr(module, "DOUBLE", 0)
        monkeypatch.setattr(module, "CHUNK", 20)
    values = table(*size)
    found = principal_axes(values)
    units = values.double() / values.double().norm(dim=-1, keepdim=True)
    centred = units - units.mean(0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    error = 1e-9 if in_double else 1e-5
    assert_close_to(found.mean, units.mean(0), error)
    alike = (found.directions.mT @ directions[:3].mT).abs()
    assert_close_to(alike, torch.eye(3).double(), error)
    expected = (sizes.square() / sizes.square().sum())[:3].tolist()
    assert found.shares == pytest.approx(expected, abs=error)
    assert (found.directions.amax(0) >= -found.directions.amin(0)).all(), "one sign every time"
    assert (found.rows, found.size) == (size[0], size[0])


def test_places_are_projections_at_length_one_and_the_axes_hold_their_share() -> None:
    values = table()
    found = principal_axes(values)
    units = values.double() / values.double().norm(dim=-1, keepdim=True)
    centred = units - units.mean(0)
    assert_close_to(found.places(values), centred @ found.directions, 1e-6)
    assert_close_to(found.places(7 * values[None]), found.places(values)[None], 1e-6)
    assert found.share_of(values) == pytest.approx(sum(found.shares))
    assert found.share_of(values[:1]) is None
    assert found.share_of(torch.full((2, 8), torch.nan)) is None


def test_a_narrow_a_constant_or_an_infinite_table() -> None:
    narrow = principal_axes(table(6, 2))
    assert narrow.directions.shape == (2, 3)
    assert narrow.shares[2] == 0
    assert principal_axes(torch.ones(4, 4)).shares == (0, 0, 0)
    assert principal_axes(torch.zeros(4, 4)).places(torch.zeros(4)).tolist() == [0, 0, 0]
    values = table()
    values[3, 1] = torch.nan
    with pytest.raises(torch.linalg.LinAlgError):
        principal_axes(values)


def test_of_a_large_table_rows_that_fit_the_work_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(rows_measured(torch.empty(49_152, 576, device="meta"))) == 49_152
    assert 90_000 < len(rows_measured(torch.empty(250_000, 768, device="meta"))) < 250_000
    assert len(rows_measured(torch.empty(128_000, 4_096, device="meta"))) == 1_024
    monkeypatch.setattr(module, "WORK", 10 * 8**2)
    found = principal_axes(table())
    assert (found.rows, found.size) == (10, 60)


def test_a_sample_is_the_same_every_time_and_has_no_row_twice() -> None:
    assert sample_rows(5, 9).tolist() == [0, 1, 2, 3, 4]
    found = sample_rows(10_000, 100).tolist()
    assert found == sample_rows(10_000, 100).tolist() == sorted(set(found))
    assert len(found) == 100
    assert max(found) > 9_000


MODELS = ("translation", "letters", "reviews", "bert", "gpt2", "t5")


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
        assert_close_to(found.states[0], part.embedding(ids) * part.embedding_scale)
        last = forward.trace[f"{stack}.{len(part.blocks) - 1}.resid_post"][0]
        assert_close_to(found.states[-1], last)
        assert_close_to(token_paths(forward, stack, places[-1:]).states, found.states[:, -1:])


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
    assert_close_to(logits, model.read(model.last_stack.norm(last))[0])


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
    assert_close_to(found.around, axes.places(table[list(found.vocabulary)]))
    assert_close_to(found.places[0], axes.places(table[list(paths.ids)]))
    assert found.shares[0] == axes.share_of(paths.states[0])

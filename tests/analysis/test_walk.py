"""The stages of a pass: each is the pass's own value, and follows from those before it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from explorer import library, reading
from explorer.analysis.walk_again import difference
from explorer.analysis.walk_numbers import equation, in_numbers
from explorer.analysis.walk_sum import as_sum, in_latex
from explorer.analysis.walk_values import Walk, recorded
from explorer.library import Opened
from explorer.reading import Reading
from explorer.text import word_tokenizer
from explorer.text.special import SOURCE
from models.trace import Trace
from tests import zoo
from tests.models.building import shake
from tests.shelf import WORDS, put

PUBLISHED = ("bert", "gpt2", "t5", "classifier")
TRAINED = ("translation", "shakespeare", "negation", "reviews", "reverse", "induction")
EXACT = 1e-6


def walked(of: Reading, head: int = 0) -> Walk:
    @lru_cache
    def record(sites: tuple[str, ...]) -> Trace:
        return recorded(of, sites)

    return Walk(of, head, len(of.target or of.source) - 1, record)


def worst(of: Reading) -> float:
    """The largest difference of any stage from its formula, of the first and the last head."""
    heads = {0, of.config.n_heads - 1}
    walks = [walked(of, head) for head in heads]
    return max(difference(walk, stage) for walk in walks for stage in walk.stages.values())


def test_every_stage_follows_from_those_before_it(found: Reading) -> None:
    assert worst(found) <= EXACT


def test_two_stacks_that_know_segments_have_each_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    text = word_tokenizer(WORDS, SOURCE)
    put(tmp_path, "two", text, "the cat", kind="encoder-decoder", n_segments=2)
    opened = library.open_model("two")
    shake(opened.model.double(), by=0.4)
    of = reading.fresh_batch(opened, ("the black cat",))[0]
    assert len(of.source) != len(of.target)
    assert worst(of) <= EXACT
    every_cell_is_opened(walked(of))


def test_of_a_pair_of_texts_too(tmp_path: Path) -> None:
    opened = library.opened_from(zoo.bert(tmp_path / "bert"), "bert")
    of = reading.read(opened, "the cat was good", "the dog")
    assert set(walked(of).segments("encoder").tolist()) == {0, 1}
    assert worst(of) <= EXACT
    every_cell_is_opened(walked(of))


def published(folder: Path, name: str) -> Reading:
    opened = library.opened_from(getattr(zoo, name)(folder / name), name)
    opened.model.double()
    text = "5 17 3" if name == "gpt2" else "the cat was good"
    return reading.fresh_batch(opened, (text,))[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_of_published_models_too(tmp_path: Path, name: str) -> None:
    of = published(tmp_path, name)
    assert worst(of) <= EXACT
    every_cell_is_opened(walked(of))


def test_of_trained_models_as_they_are() -> None:
    """In float32, as on the screen."""
    for name in TRAINED:
        opened = library.open_model(name)
        assert worst(reading.read(opened, opened.example)) <= EXACT, name


def test_a_planted_mistake_is_seen_where_it_is(found: Reading) -> None:
    """A value of the pass that is another: its own stage, and those that read it, say so."""
    stack = found.config.stacks[0]
    site = f"{stack}.0.self_attn.v"
    found.trace.values[site] = found.trace[site] * 1.1
    walk = walked(found)
    assert difference(walk, walk.stages[site]) > 1e-2
    assert difference(walk, walk.stages[f"{stack}.0.self_attn.head_out"]) > 1e-2
    assert difference(walk, walk.stages[f"{stack}.0.self_attn.k"]) <= EXACT


def test_what_the_trace_shows_is_shown_as_it_is(found: Reading) -> None:
    """Every value that has a site is what a pass that is watched everywhere has there."""
    walk = walked(found, head=1 % found.config.n_heads)
    everything = recorded(found, ("*",))
    for stage in walk.stages.values():
        if not stage.site or stage.kind in ("logits", "class logits"):
            continue
        seen = everything[stage.site][0]
        if stage.per_head:
            seen = seen.expand(max(1, len(seen)), -1, -1)
            seen = seen[min(walk.head_of(stage, len(seen)), len(seen) - 1)]
        torch.testing.assert_close(walk[stage.name], seen, msg=stage.name)


def test_the_answer_at_the_end_is_the_answer_of_the_pass(found: Reading) -> None:
    walk = walked(found)
    given = found.trace["logits"][0]
    mine = walk["logits"]
    torch.testing.assert_close(mine[-len(given) :] if given.dim() > 1 else mine[0], given)
    torch.testing.assert_close(walk["probabilities"].sum(-1), torch.ones_like(mine[:, 0]))


class Largest(TorchDispatchMode):
    """The most numbers of 64 bits that anything computed within had."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, list | tuple) else [made]:
            if isinstance(each, Tensor) and each.dtype == torch.float64:
                self.most = max(self.most, each.numel())
        return made


def test_the_check_of_one_row_never_holds_the_vocabulary_matrix() -> None:
    """Once more for a token: its own row of the embedding, and the options that are drawn."""
    opened = library.open_model("shakespeare")
    walk = walked(reading.read(opened, opened.example))
    config, stack = opened.config, opened.config.stacks[0]
    for name, columns in ((f"{stack}.embed", slice(None)), ("logits", [3, 1])):
        walk[name]
        with Largest() as seen:
            assert difference(walk, walk.stages[name], slice(0, 1), columns) <= EXACT
        assert 0 < seen.most < config.vocab_size * config.d_model / 4, name


def test_the_check_of_joined_heads_weighs_only_the_row_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = reading.read(library.open_model("shakespeare"), "to be or not to be")
    walk, asked = walked(of), list[int]()
    walk["decoder.0.self_attn.concat"]
    whole = Reading.weights

    def weights(of: Reading, part: str, layer: int, head: int) -> Tensor:
        asked.append(head)
        return whole(of, part, layer, head)

    monkeypatch.setattr(Reading, "weights", weights)
    stage = walk.stages["decoder.0.self_attn.concat"]
    assert difference(walk, stage, slice(2, 3)) <= EXACT
    assert not asked


def test_a_number_is_the_sum_of_its_terms(found: Reading) -> None:
    """The largest products, the rest and the bias are the number that the pass had."""
    walk, kinds = walked(found, head=found.config.n_heads - 1), set[str]()
    for stage in walk.stages.values():
        value = walk[stage.name].double()
        for row, column in {(0, 0), (len(value) - 1, value.shape[-1] - 1)} if value.dim() else ():
            made = as_sum(walk, stage, row, column) if value.dim() == 2 else None
            if made is None:
                continue
            kinds.add(stage.kind)
            assert made.total == pytest.approx(float(value[row, column]), rel=1e-6, abs=1e-6)
            sizes_of = [abs(x * w) for _, x, w in made.terms]
            assert sizes_of == sorted(sizes_of, reverse=True)
            assert "=" in in_latex(made, stage, walk.config, made.total)
    assert {"linear", "projected", "products", "head out"} <= kinds


def every_cell_is_opened(walk: Walk) -> None:
    """As a sum or as an equation, not both; a row that sees no key has no shares to show."""
    for stage in walk.stages.values():
        value = walk[stage.name].double()
        if value.dim() != 2:
            continue
        for row, column in {(0, 0), (len(value) - 1, value.shape[-1] - 1)}:
            made = in_numbers(walk, stage, row, column)
            summed = as_sum(walk, stage, row, column)
            if made is None and summed is None:
                blind = stage.kind == "weights" and not walk.mask(stage)[row].any()
                assert blind or isinstance(walk.module(stage), nn.Identity), stage.name
            if made is not None:
                shown = float(value[row, column])
                assert made.total == pytest.approx(shown, rel=1e-6, abs=1e-6), stage.name
                assert "=" in equation(made, shown)


def test_every_number_of_every_stage_is_opened(found: Reading) -> None:
    every_cell_is_opened(walked(found, head=found.config.n_heads - 1))


def hooked(of: Reading, walk: Walk) -> dict[str, Tensor]:
    """What the modules that stages name really gave in a pass, by the names of the modules."""
    seen: dict[str, Tensor] = {}
    modules = dict(of.trace.model.named_modules())
    handles = []
    for stage in walk.stages.values():
        if stage.module and not stage.site and stage.module in modules:

            def keep(_: Any, __: Any, output: Tensor, name: str = stage.module) -> None:
                seen[name] = output.detach()

            handles.append(modules[stage.module].register_forward_hook(keep))
    recorded(of, ("none",))
    for handle in handles:
        handle.remove()
    return seen


def test_what_the_trace_does_not_show_is_what_the_models_modules_gave(found: Reading) -> None:
    walk = walked(found)
    seen = hooked(found, walk)
    for stage in walk.stages.values():
        if stage.site or stage.module not in seen:
            continue
        gave = seen[stage.module][0]
        if stage.kind == "projected":
            heads = gave.unflatten(-1, (-1, found.config.head_width)).transpose(0, 1)
            gave = heads[walk.head_of(stage, len(heads))]
        elif stage.per_head:
            gave = gave[walk.head_of(stage, len(gave))]
        torch.testing.assert_close(walk[stage.name], gave, msg=stage.name)


def test_few_answers_are_made_where_the_vocabulary_is_large(
    found: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.analysis.walk_values.MOST_LOGITS", 10)
    walk = walked(found)
    assert walk["logits"].shape[0] == 1
    assert difference(walk, walk.stages["logits"]) <= EXACT
    assert difference(walk, walk.stages["probabilities"]) <= EXACT


def test_nothing_grows_with_layers_times_heads_times_tokens_squared() -> None:
    """What is kept of a walk through every stage: streams and heads' outputs, block by block."""
    opened: Opened = library.open_model("shakespeare")
    of = reading.read(opened, "to be or not to be " * 9)
    kept: dict[tuple[str, ...], Trace] = {}

    def record(sites: tuple[str, ...]) -> Trace:
        if sites not in kept:
            kept[sites] = recorded(of, sites)
        return kept[sites]

    for name in Walk(of, 0, 0, record).stages:
        Walk(of, 0, 0, record)[name]
    tokens = len(of.target)
    assert tokens > 50
    for made in kept.values():
        assert all(value.shape[-2:] != (tokens, tokens) for value in made.values.values())

"""What is drawn token by token is what the model writes, and it stops where that does."""

import copy
import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog import available_models, opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.inference.branches import Branches
from explorer.inference.continuation import (
    LATER,
    continue_from,
    log_probabilities,
    prompt_of,
    sample_tokens,
)
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.generation_limits import MAX_GENERATED, stop_reason, target_ids
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import forget
from explorer.inference.sampling_stages import sample_token, sampling_stages
from models.config import GenerationConfig
from models.generation import generate
from models.sampling import Sampling, ban_tokens, choose_from
from tests.closeness import assert_close_to
from tests.grids import grid

samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.none() | st.floats(0.05, 1.0),
)


@given(values=st.lists(st.floats(-20, 20), min_size=2, max_size=12), sampling=samplings)
def test_the_last_stage_is_what_is_drawn_from(values: list[float], sampling: Sampling) -> None:
    found = sampling_stages(torch.tensor(values), sampling)
    assert_close_to(found.final, choose_from(torch.tensor(values)[None], sampling)[0])
    for stage in (found.plain, found.tempered, found.final):
        assert float(stage.sum()) == pytest.approx(1.0, abs=1e-5)
    together = float(found.top_p.sum()) + found.cut_by_k + found.cut_by_p
    assert together == pytest.approx(1.0, abs=1e-5)
    assert torch.all(found.top_p <= found.top_k)
    assert torch.all(found.top_k <= found.tempered)
    assert found.left == int((found.top_p > 0).sum())


def test_top_k_and_top_p_cut_what_they_say_and_seeds_follow_the_chances() -> None:
    chances = torch.tensor([0.5, 0.3, 0.15, 0.05])
    found = sampling_stages(chances.log(), Sampling(top_k=3, top_p=0.8))
    assert (found.top_k > 0).tolist() == [True, True, True, False]
    assert (found.top_p > 0).tolist() == [True, True, False, False]
    assert found.cut_by_k == pytest.approx(0.05, abs=1e-6)
    assert found.cut_by_p == pytest.approx(0.15, abs=1e-6)
    assert_close_to(found.final, torch.tensor([0.625, 0.375, 0.0, 0.0]))
    forbidden = sampling_stages(torch.tensor([1.0, -math.inf, 0.0]), Sampling(temperature=4.0))
    assert forbidden.final[1] == 0
    sampling = Sampling()
    found = sampling_stages(torch.tensor([0.7, 0.3]).log(), sampling)
    assert sample_token(found, sampling, 3) == sample_token(found, sampling, 3)
    share = sum(sample_token(found, sampling, seed) for seed in range(400)) / 400
    assert share == pytest.approx(0.3, abs=0.08)
    assert sample_token(found, Sampling(temperature=0.0), 3) == 0


SHIPPED = ("translation", "shakespeare", "induction")
PUBLISHED = {"gpt2": "5 17 3", "t5": "the cat"}
SAMPLINGS = (
    Sampling(temperature=2.5, top_k=9),
    Sampling(temperature=0.7, top_p=0.8),
    Sampling(temperature=3.0, top_k=20, top_p=0.01),
)


def written(opened: OpenModel, text: str, sampling: Sampling, seed: int, most: int) -> list[int]:
    start, path = prompt_of(opened, text), list[int]()
    while len(path) < most and not stop_reason(opened, start, path):
        found = sampling_stages(continue_from(opened, text, path).logits, sampling)
        path.append(sample_token(found, sampling, seed, len(path)))
    return path


def by_itself(opened: OpenModel, text: str, sampling: Sampling, seed: int, most: int) -> list[int]:
    prompt = prompt_of(opened, text).ids
    how = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    steps = generate(opened.model, prompt, max_length=most, seed=seed, **how)  # type: ignore[arg-type]
    return [int(step.ids) for step in steps]


@grid("name, sampling", (*SHIPPED, *PUBLISHED), SAMPLINGS)
def test_a_drawn_branch_is_what_is_written(name: str, sampling: Sampling, published: Path) -> None:
    if name in PUBLISHED:
        opened = opened_model.open_entry(available_models.brought_model(published / name))
    else:
        opened = opened_model.open_model(name)
    text = PUBLISHED.get(name, opened.example)
    path = by_itself(opened, text, sampling, 3, 10)
    assert written(opened, text, sampling, 3, 10) == path
    for begun in range(0, len(path), 3):
        going = sample_tokens(opened, text, path[:begun], sampling, 3)
        assert list(islice(going, len(path) - begun)) == path[begun:]


def test_the_places_of_a_model_are_filled_to_the_last() -> None:
    for name in SHIPPED:
        opened, sampling = opened_model.open_model(name), Sampling(temperature=0.0)
        start = prompt_of(opened, opened.example)
        path = by_itself(opened, opened.example, sampling, 0, start.room)
        assert written(opened, opened.example, sampling, 0, 100) == path
        why = stop_reason(opened, start, path)
        assert ("ends the text" in why) == (path[-1] in opened.config.generation.eos_ids)
        assert stop_reason(opened, start, path[:-1]) == ""


def tree(opened: OpenModel) -> Branches:
    """Branches behind branches, one of a single token, one that is a beginning of another."""
    known = opened.config.vocab_size
    first = written(opened, opened.example, Sampling(temperature=1.5), 1, 5)
    others = [(token + 1) % known for token in first]
    found = Branches().append(first, forced=False)
    found = found.go_to(2).append(others[2:4], forced=True)
    found = found.go_to(0).append(others[:1], forced=True)
    return found.go_to(min(2, len(first))).append([(first[2] + 2) % known], forced=False)


def test_chances_of_what_was_written_are_those_of_each_step() -> None:
    for name in SHIPPED[:2]:
        opened = opened_model.open_model(name)
        text, found = opened.example, tree(opened)
        expected = [0.0]
        for node in range(1, len(found.nodes)):
            *path, token = found.path(node)
            expected.append(float(continue_from(opened, text, path).logits.log_softmax(-1)[token]))
        for at in range(len(found.nodes)):
            forget(opened)
            standing = continue_from(opened, text, found.path(at))
            given = log_probabilities(opened, text, found, standing, at, lambda _: None)
            assert given == pytest.approx(expected, abs=1e-3)


def test_every_step_is_a_pass_of_its_own() -> None:
    """The maps and the logits after so many tokens, in the size of the whole.

    The last are those of the core over what stands there.
    """
    for name in SHIPPED[:2]:
        opened = opened_model.open_model(name)
        text = opened.example
        path = written(opened, text, Sampling(temperature=0.0), 0, 5)
        whole, start = continue_from(opened, text, path), prompt_of(opened, text)
        target = torch.tensor([[*(token.id for token in start.tokens), *path]])
        inputs = [ids_of([start.source]), target] if start.source else [target]
        with torch.no_grad():
            logits = opened.model(*inputs)[0, -1]
        assert_close_to(whole.logits, ban_tokens(logits[None], opened.config, first=False)[0])
        assert whole.steps == len(path)
        for step in (0, 2, whole.steps):
            alone = continue_from(opened, opened.example, path[:step])
            assert_close_to(whole.all_logits[step], alone.logits)
            for part in alone.forward.parts:
                place = part.name, part.layers - 1, part.heads - 1
                seen, own = whole.weights(*place, step), alone.forward.weights(*place)
                rows, columns = whole.size(part.name, step)
                assert own.shape == (rows, columns)
                assert_close_to(seen[:rows, :columns], own)
                assert int((~seen.isnan()).sum()) == rows * columns, "what is later has no number"
                allowed_then = whole.mask(part.name, part.layers - 1, step)
                assert not allowed_then[seen.isnan()].any()
                named = [*alone.forward.rows(part.name), *[LATER] * (len(seen) - rows)]
                assert whole.rows(part.name, step) == named
                assert len(whole.columns(part.name, step)) == seen.shape[1]


def test_what_may_not_be_generated_has_no_logit() -> None:
    for name in SHIPPED[:2]:
        opened = opened_model.open_model(name)
        best = written(opened, opened.example, Sampling(temperature=0.0), 0, 3)[-1]
        config = opened.config.replace(generation=GenerationConfig((), 5, (best,)))
        model = copy.deepcopy(opened.model)
        model.config = config
        banning = replace(opened, config=config, model=model)
        path = written(banning, opened.example, Sampling(temperature=0.0), 0, 3)
        assert best not in path
        logits = continue_from(banning, opened.example, path).all_logits
        is_first = opened.config.kind == "encoder-decoder"
        assert (logits[is_first:, best] == -torch.inf).all()
        if is_first:
            assert path[0] == 5
            assert logits[0].isfinite().nonzero().tolist() == [[5]]


def test_a_text_that_fills_the_model_has_room_for_one_token(published: Path) -> None:
    gpt2 = opened_model.open_entry(available_models.brought_model(published / "gpt2"))
    assert prompt_of(gpt2, "5 " * gpt2.config.max_len).room == 1
    assert prompt_of(gpt2, "5 17").room <= MAX_GENERATED
    with pytest.raises(ForwardPassError, match="choose one with a decoder"):
        prompt_of(opened_model.open_model("reviews"), "good")


def test_rows_hold_the_likeliest_and_those_that_are_asked_for() -> None:
    found = sampling_stages(torch.arange(40.0), Sampling())
    assert found.likeliest(5, [38, 3]) == [39, 38, 37, 36, 3]
    assert found.likeliest(99, [3]) == list(range(39, -1, -1))
    assert found.rank(3) == 37


def test_the_right_answer_is_known_by_the_rules_and_a_target_fits() -> None:
    for name, text, answer in (("translation", "cat the", ""), ("reverse", "abc", "cba")):
        opened = opened_model.open_model(name)
        assert opened.task is not None
        assert opened.task.answer_text(opened.tokenizer.encode(text)) == answer
    prompt = prompt_of(opened, "abc")
    ids = target_ids(opened, prompt, "cba")
    assert (ids[0], ids[-1]) == (opened.config.bos_id, opened.config.generation.eos_ids[0])
    assert opened.tokenizer.decode(ids) == "cba"
    with pytest.raises(ForwardPassError, match="shorten it"):
        target_ids(opened, prompt, "a" * 40)


def test_writing_stops_where_no_more_tokens_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last token is read no more, so one is written beyond what a pass may have."""
    opened = opened_model.open_model("shakespeare")
    text = opened.example
    begun = len(run_text(opened, text).tokens)
    monkeypatch.setenv("EXPLORER_LIMIT_PASS_TOKENS", str(begun + 2))
    prompt = prompt_of(opened, text)
    path = written(opened, text, Sampling(), 1, prompt.room)
    assert len(path) == 3
    stopped = f"Stopped: at most {begun + 2} tokens are read here."
    assert stop_reason(opened, prompt, path) == stopped
    assert continue_from(opened, text, path[:-1]).steps == 2

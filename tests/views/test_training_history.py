"""The film of a training: every frame is the pass of its snapshot, and what is said of the run."""

import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.inference.answers import longest_answer
from explorer.inference.forward_pass import rerun, run_text
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run
from explorer.views.training_history import film_view, moments
from tests import apps
from tests.apps import said
from tests.views.drawing import press, put_state, sent

TEXT = "abcdef"
PAGE = "training/training_history"
STEPS = [0, 1, 2, 3, 5, 7, 10, 12]


def page(run: Run, **address: str) -> AppTest:
    at = apps.page(PAGE, model=run.name, text=TEXT, part="Cross", layer="0", head="1", **address)
    assert not at.exception
    return at


def test_a_frame_is_the_pass_of_its_snapshot(run: Run) -> None:
    header, planes = sent(page(run), "film")
    assert header["steps"] == STEPS
    snapshots = dict(run.snapshots())
    last = run_text(open_folder(snapshots[12]), TEXT)
    for place, step in enumerate(STEPS):
        opened = open_folder(snapshots[step])
        forward = rerun(opened, last, last.source, last.target, ())
        expected = forward.weights("decoder.cross_attn", 0, 1).numpy()
        _, shown = wire.unpack(planes[f"{place} film_map"])
        found = np.frombuffer(shown["exact"], "<f4").reshape(expected.shape)
        assert np.array_equal(found, expected), step
        assert header["said"][place][0] == ["Writes", run_text(opened, TEXT).answer.text or "–"]


def test_every_view_that_changes_has_a_message_in_every_frame(run: Run) -> None:
    header, planes = sent(page(run), "film")
    assert header["keys"] == ["film_heads", "film_map", "film_pass"]
    assert len(planes) == len(STEPS) * len(header["keys"])


def test_it_begins_at_the_step_of_the_bar(run: Run) -> None:
    assert sent(page(run, training_step="2"), "film")[0]["at"] == STEPS.index(2)
    assert sent(page(run), "film")[0]["at"] == len(STEPS) - 1


def test_a_step_that_the_film_has_not_is_said(run: Run) -> None:
    shown = page(run, film_step="6")
    assert "“Step of the film” has no “6” in this training; showing step 12." in said(shown)


def test_a_guess_is_answered_with_the_pattern_over_the_heads(run: Run) -> None:
    at = page(run, history_view="Guess the pattern")
    assert "ghost" not in sent(at, "pattern_0")[1]
    press(at, "guess_0")
    assert "on the pattern" in said(at)
    for step in (0, 12):
        _, planes = sent(at, f"ghost_{step}")
        assert any(planes["ghost"])
    press(at, "guess_again")
    assert sent(at, "pattern_2")


def test_two_moments_are_two_snapshots_and_their_difference(run: Run) -> None:
    at = page(run, history_view="Two moments", first_step="1", second_step="10")
    assert "Step 1" in said(at)
    assert "Step 10" in said(at)
    first, second, change = (
        np.frombuffer(sent(at, key)[1]["exact"], "<f4")
        for key in ("moment_first", "moment_second", "map_difference")
    )
    assert np.allclose(second - first, change, atol=1e-6)


def test_a_model_without_snapshots_offers_those_that_have(run: Run) -> None:
    at = apps.page(PAGE, model="reverse", text="ab")
    assert "No snapshots are kept of the training of this model. These have some:" in said(at)
    press(at, f"history_of_{run.name}")
    assert sent(at, "film")[0]["steps"] == STEPS


def test_another_kind_of_attention_expects_nothing(run: Run) -> None:
    at = apps.page(
        PAGE, model=run.name, text=TEXT, part="Encoder", history_view="Guess the pattern"
    )
    assert "has no expected pattern for this attention" in said(at)


def test_a_sentence_too_long_for_a_film_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.views.training_history.film_view.MOST_TOKENS", 3)
    assert "A film shows at most 3 tokens" in said(page(run))


def test_a_sentence_too_long_is_said_before_any_pass(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.views.training_history.film_view.MOST_TOKENS", 3)
    monkeypatch.setattr(moments, "history_of", lambda context: pytest.fail("passes were made"))
    assert "A film shows at most 3 tokens" in said(page(run))


def test_the_film_is_encoded_once_while_nothing_changes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Counter[str]()

    def count(name: str, function: Callable[..., Any]) -> None:
        def counted(*given: Any, **named: Any) -> Any:
            made[name] += 1
            return function(*given, **named)

        monkeypatch.setattr(film_view, name, counted)

    for name in ("_messages", "encode_film"):
        count(name, getattr(film_view, name))
    at = page(run)
    first = dict(made)
    assert first == {"_messages": len(STEPS), "encode_film": 1}
    at.run()
    assert dict(made) == first
    put_state(at, head=0)
    assert dict(made) == {"_messages": 2 * len(STEPS), "encode_film": 2}


def test_weights_that_are_replaced_make_another_frame(run: Run) -> None:
    at = page(run)
    before = sent(at, "film")[1]["1 film_map"]
    snapshots = dict(run.snapshots())
    for each in snapshots[12].iterdir():
        shutil.copy(each, snapshots[1] / each.name)
    at.run()
    after = sent(at, "film")[1]
    assert after["1 film_map"] != before
    shown = [wire.unpack(after[f"{place} film_map"])[1]["exact"] for place in (1, len(STEPS) - 1)]
    assert shown[0] == shown[1]


def test_the_cost_of_a_film_counts_the_answers_and_both_passes(run: Run) -> None:
    opened = open_folder(dict(run.snapshots())[12])
    forward = run_text(opened, TEXT)
    reads = len(forward.source) + longest_answer(opened)
    assert moments._cost(opened, forward) == 3 * reads * opened.model.n_parameters

"""Every lesson can be finished, and each page is sent what the lesson says of it.

A step ends at the address that “Show me” opens; there its control has the value that the reader is
to give it. Some lessons are walked in a browser instead: `tests/browser/test_lessons.py`.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog.pretrained_models import FIRST
from explorer.lessons.lesson import LessonStep, is_done
from explorer.views.lessons.panel import address_at
from tests import apps
from tests.sent_words import sent_words
from tests.shipped_lessons import LESSONS, WALKED
from tests.smollm2 import folder_with_smollm2
from tests.whole_numbers import stands_in


def says(at: AppTest, texts: Sequence[str]) -> None:
    words = sent_words(at)
    assert "; showing " not in words, "the link opens what is not there"
    assert [text for text in texts if not stands_in(text, words)] == []


def control_of(at: AppTest, step: LessonStep) -> Any:
    """What the task is done with; of several under this key the first."""
    drawn = [node for node in at._tree if getattr(node, "key", None) == step.control]
    assert drawn, f"the page has no {step.control}"
    return drawn[0]


def finish(at: AppTest, step: LessonStep) -> AppTest:
    """The page once the task is done."""
    value: Any = next(iter(step.do.values()))
    before = control_of(at, step)
    if before.type == "button":
        apps.run(before.click())
        assert is_done(step, step.page, dict(at.query_params)), at.query_params
        return at
    end = apps.linked(step.ends)
    after = control_of(end, step)
    match before.type:
        case "selectbox":
            assert after.options[after.index] == value
        case "button_group":
            assert after.value == value
        case "toggle":
            assert after.value != before.value
        case "slider":
            assert after.value == moved(before, value)
        case "text_input" | "text_area":
            assert after.value == value
        case "bidi_component":
            row, column = value
            pair, head = {"pinned": f"q{row}k{column}"}, {"layer": f"{row}", "head": f"{column}"}
            assert step.done in (pair, head)
        case kind:
            raise AssertionError(f"{step.control} is a {kind}")
    return end


def moved(slider: Any, keys: Sequence[str]) -> float:
    """The value of a slider after these keys."""
    value = slider.value
    for key in keys:
        steps = {"ArrowLeft": -1, "ArrowRight": 1}.get(key, 0)
        value = {"Home": slider.min, "End": slider.max}.get(key, value + steps * slider.step)
    return float(value)


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in WALKED])
def test_a_lesson_can_be_finished(
    name: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    steps = LESSONS[name].steps
    if any(step.choices.get("model") == FIRST for step in steps):
        monkeypatch.setenv("EXPLORER_EXAMPLES", str(folder_with_smollm2()))
    for place, step in enumerate(steps, 1):
        with subtests.test(step=place):
            at = apps.linked(address_at(LESSONS[name], place))
            says(at, step.see_first)
            says(finish(at, step) if step.done else at, step.see)

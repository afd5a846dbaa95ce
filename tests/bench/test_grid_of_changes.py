"""What takes many passes waits for a button, and what takes too many is refused in a sentence."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis import ablation
from tests import apps

VIEWS = [("Every head", "heads"), ("Faithfulness", "cuts")]


pytestmark = pytest.mark.usefixtures("small_models")


def page(view: str) -> AppTest:
    return apps.page("change/edits", model="letters", text="the cat", look=view)


def is_shown(at: AppTest, view: str) -> bool:
    if view == "Every head":
        return "heads_off" in {each.key for each in at.get("bidi_component")}
    return any("set to zero, the strongest first" in each.value for each in at.caption)


def strongest(at: AppTest) -> list[list[str]]:
    """The table of the heads that matter most."""
    table = next(each.value for each in at.dataframe if "head" in each.value)
    return [[str(value) for value in row] for row in table.to_numpy()]


def buttons(at: AppTest) -> set[str | None]:
    return {each.key for each in at.button}


def test_what_is_quick_is_shown_at_once(subtests: pytest.Subtests) -> None:
    for view, name in VIEWS:
        with subtests.test(view=view):
            at = page(view)
            assert is_shown(at, view)
            assert f"begin_{name}" not in buttons(at)


@pytest.mark.parametrize(("view", "name"), VIEWS)
def test_what_takes_long_waits_for_a_button(
    view: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "AT_ONCE", 1)
    at = page(view)
    assert not is_shown(at, view)
    at.button(key=f"begin_{name}").click().run()
    assert not at.exception
    assert is_shown(at, view)
    at.text_input(key="text").set_value("the hat").run()
    assert not is_shown(at, view), "another text is another wait"


@pytest.mark.parametrize("view", ["Every head", "Faithfulness"])
def test_what_takes_too_long_is_refused(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "MOST", 1)
    monkeypatch.setattr("explorer.analysis.faithfulness.MOST", 1)
    at = page(view)
    assert not is_shown(at, view)
    assert any("too long: shorten the text" in each.value for each in at.text)


@pytest.mark.parametrize("view", ["Every head", "Faithfulness"])
def test_it_is_done_in_the_pass_with_the_edits(view: str) -> None:
    def caption(at: AppTest) -> str:
        return " ".join(each.value for each in at.caption)

    at = page(view)
    assert "in the pass as it is" in caption(at)
    at.text_input(key="edits").set_value("1.1~k.d.a.1").run()
    assert not at.exception
    assert "in the pass with your edits" in caption(at)
    assert is_shown(at, view)


def test_heads_are_patched_from_a_sentence_of_as_many_tokens() -> None:
    at = apps.page(
        "change/edits", model="letters", text="the cat", look="Every head", heads_are="Patched"
    )
    assert not is_shown(at, "Every head")
    assert any("type a sentence" in each.value for each in at.text)
    at.text_input(key="heads_from").set_value("the cat and the hat").run()
    assert any("only texts of the same length" in each.value for each in at.text)
    assert not is_shown(at, "Every head")
    at.text_input(key="heads_from").set_value("the hat").run()
    assert not at.exception
    assert is_shown(at, "Every head")
    assert any("as it is over the other sentence" in each.value for each in at.caption)
    first = strongest(at)
    at.text_input(key="heads_from").set_value("hat the").run()
    assert strongest(at) != first, "another sentence, other numbers"

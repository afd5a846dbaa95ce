"""What is held and drawn in the large head: read from an address, kept, let go, carried over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from explorer.bench import held
from explorer.bench.held import Held
from tests import apps
from tests.grids import grid

GROUPS = ((0,), (1, 2), (3,))


pytestmark = pytest.mark.usefixtures("small_models")


def page(name: str = "attention", **address: str) -> AppTest:
    return apps.page(f"look/{name}", **address)


def said(at: AppTest) -> str:
    return "\n".join(element.value for element in at.text)


@given(some.none() | some.integers(0, 9), some.none() | some.integers(0, 9))
def test_an_address_says_what_is_held(query: int | None, key: int | None) -> None:
    wish = Held(query, key)
    assert held._read(str(wish), 10, 10) == wish
    short = held._read(str(wish), 5, 5)
    assert short.query == (query if query is not None and query < 5 else None)
    assert short.key == (key if key is not None and key < 5 else None)


def test_what_is_no_token_is_not_held(subtests: pytest.Subtests) -> None:
    for wish in ["banana", "q", "q-1", "k1q2", "q1 k2", "q" + "9" * 5_000]:
        with subtests.test(wish=wish):
            assert held._read(wish, 10, 10) == Held()


def test_an_address_says_which_heads_are_drawn(subtests: pytest.Subtests) -> None:
    for wish, heads in [
        ("0.2", (0, 2)),
        ("2.0.0", (0, 2)),
        ("all", (0, 1, 2, 3)),
        ("4", ()),
        ("", ()),
        ("x", ()),
    ]:
        with subtests.test(wish=wish):
            assert held._heads(wish, 4) == heads


def test_a_token_is_found_in_a_picture_of_words() -> None:
    assert held.cell(Held(2, 3), GROUPS, GROUPS) == (1, 2)
    assert held.cell(Held(2, None), GROUPS, GROUPS) is None
    assert held.cell(Held(2, 9), GROUPS, GROUPS) is None, "the picture leaves that key out"
    assert held.token(Held(2, 3), GROUPS, GROUPS) == (0, 1)
    assert held.token(Held(None, 3), GROUPS, GROUPS) == (1, 2)
    assert held.token(Held(None, 3), GROUPS, GROUPS, one_strip=True) == (0, 2)
    assert held.token(Held(), GROUPS, GROUPS) is None


def test_an_address_that_asks_in_vain_is_said(subtests: pytest.Subtests) -> None:
    for view in ["Matrix", "Lines", "Tokens"]:
        with subtests.test(view=view):
            at = page(model="letters", view=view, held="q99k0", drawn="77")
            assert "not “q99k0”; held is k0." in said(at)
            assert "“drawn” can be heads 0 to 3 with dots between them, not “77”" in said(at)
            at.text_input(key="text").set_value("the hat").run()
            assert "“held”" not in said(at)


def test_nothing_is_said_of_what_can_be_held(subtests: pytest.Subtests) -> None:
    for view in ["Matrix", "Lines", "Tokens"]:
        with subtests.test(view=view):
            assert "“held”" not in said(page(model="letters", view=view, held="q2k1", drawn="0.1"))


def test_heads_drawn_belong_to_the_head_beside_them() -> None:
    at = page(model="letters", view="Lines", head="1", drawn="1.2")
    assert at.session_state["_folded_held"] == {"drawn": "1.2"}
    at.segmented_control(key="head").set_value(3).run()
    assert at.session_state["_folded_held"] == {}


def test_a_held_cell_is_the_pair_of_the_query_and_key_page() -> None:
    at = page(model="letters", held="q2k1")
    at.switch_page("../pages/look/pairs.py").run()
    assert not at.exception
    assert (at.selectbox(key="query").value, at.selectbox(key="key").value) == (2, 1)


def test_a_text_that_does_not_reach_what_is_held_lets_it_go() -> None:
    at = page(model="letters", held="q3k1", text="the cat and the hat")
    assert at.session_state["_folded_held"] == {"held": "q3k1"}
    at.text_input(key="text").set_value("t").run()
    assert not at.exception
    assert "q3" not in str(at.session_state["_folded_held"])
    assert "“held”" not in said(at)


@grid("view, part", ["Matrix", "Lines", "Tokens"], ["Encoder", "Decoder", "Cross"])
def test_every_attention_holds_a_cell(view: str, part: str) -> None:
    at = page(model="translation", part=part, view=view, held="q1k2", words="true")
    assert at.session_state["_folded_held"] == {"held": "q1k2"}
    at.switch_page("../pages/look/pairs.py").run()
    assert not at.exception
    assert (at.selectbox(key="query").value, at.selectbox(key="key").value) == (1, 2)


def test_one_token_can_be_held() -> None:
    at = page(model="reverse", text="7", view="Tokens", held="q0")
    assert at.session_state["_folded_held"] == {"held": "q0"}

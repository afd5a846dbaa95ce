"""A choice is in the address, a bad one is said, and a token keeps its place in another text."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.grids import grid


def few() -> None:
    import streamlit as st

    from explorer.choices import one_of

    st.caption(one_of("Colour", "colour", ("red", "green"), "green"))


def titled() -> None:
    import streamlit as st

    from explorer.choices import one_of

    st.caption(one_of("Colour", "colour", ("green", "red", "2 · Red"), "green"))


def following() -> None:
    import streamlit as st

    from explorer.choices import one_of

    usual = st.text_input("Usual", "red", key="usual")
    st.caption(one_of("Colour", "colour", ("red", "green", "blue"), usual))


def listed() -> None:
    import streamlit as st

    from explorer.choices import token

    words = st.text_input("Words", "the black cat", key="words").split()
    st.caption(str(token("Word", "word", words, len(words) - 1)))


def numbered() -> None:
    import streamlit as st

    from explorer.bench import asked_number
    from explorer.bench.stepping import stepper
    from explorer.choices import number

    st.caption(str(number("Place", "place", 30, 3)))
    st.caption(str(asked_number.whole("Seed", "seed", 0, 30, 3)))
    st.caption(f"{asked_number.slider('Heat', 'heat', 0.0, 30.0, 3.0):g}")
    st.caption(str(stepper("Step", "step", [str(at) for at in range(31)], 3)))


def opened(page: object, **address: str) -> AppTest:
    at = AppTest.from_function(page, default_timeout=30)  # type: ignore[arg-type]
    for key, value in address.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception
    return at


def said(at: AppTest) -> list[str]:
    return [each.value for each in at.text]


def test_one_of_a_few_is_the_default_until_a_link_or_a_click_says_otherwise() -> None:
    assert opened(few).caption[0].value == "green"
    at = opened(few, colour="red")
    assert (at.caption[0].value, said(at)) == ("red", [])
    at.segmented_control(key="colour").set_value("green").run()
    assert at.caption[0].value == "green"


def test_one_of_a_few_that_nobody_chose_follows_the_default() -> None:
    at = opened(following)
    at.text_input(key="usual").set_value("green").run()
    assert at.caption[0].value == "green"
    at.segmented_control(key="colour").set_value("blue").run()
    at.text_input(key="usual").set_value("red").run()
    assert at.caption[0].value == "blue"
    at = opened(following, colour="blue")
    at.text_input(key="usual").set_value("green").run()
    assert at.caption[0].value == "blue"


def test_what_is_not_among_the_few_is_said_until_something_else_is_chosen() -> None:
    at = opened(few, colour="blue")
    assert said(at) == ["“Colour” has no “blue” here; showing green."]
    assert said(at.run()) == said(at)
    at.segmented_control(key="colour").set_value("red").run()
    assert said(at) == []


def test_one_of_the_few_may_be_asked_for_in_other_letters_or_by_its_number(
    subtests: pytest.Subtests,
) -> None:
    for asked in ["RED", "2", "2 · Red"]:
        with subtests.test(asked=asked):
            at = opened(titled, colour=asked)
            assert (at.caption[0].value, said(at)) == ("2 · Red" if "2" in asked else "red", [])
            assert said(at.run()) == []


def test_a_token_that_nobody_chose_follows_the_default() -> None:
    at = opened(listed)
    assert at.selectbox(key="word").options == ["0 · the", "1 · black", "2 · cat"]
    assert at.caption[0].value == "2"
    at.text_input(key="words").set_value("a b c d e").run()
    assert at.caption[0].value == "4"


def test_a_chosen_token_keeps_its_place_as_long_as_there_is_one() -> None:
    at = opened(listed, word="1 · black")
    assert at.caption[0].value == "1"
    at.text_input(key="words").set_value("a b c d e").run()
    assert at.caption[0].value == "1"
    at.text_input(key="words").set_value("a").run()
    assert at.caption[0].value == "0"
    assert not at.exception


def test_a_token_that_is_not_there_is_said_and_replaced(subtests: pytest.Subtests) -> None:
    for word in ["9 · dog", "1", "-1", "1 · nothing", "x" * 900]:
        with subtests.test(word=word):
            at = opened(listed, word=word)
            assert at.caption[0].value == "2"
            (sentence,) = said(at)
            assert sentence.startswith("“Word” has no “")
            assert sentence.endswith("here; showing 2 · cat.")
            assert len(sentence) < 90
            at.selectbox(key="word").set_value(0).run()
            assert said(at) == []


NUMBERS = ("place", "seed", "heat", "step")


@grid("asked, at", ["31", "x", "inf", "9" * 5_000], range(len(NUMBERS)))
def test_every_number_that_there_is_not_is_said_alike(at: int, asked: str) -> None:
    page = opened(numbered, **{NUMBERS[at]: asked})
    assert page.caption[at].value == "3"
    (sentence,) = said(page)
    label, _, rest = sentence.partition(" ")
    assert label == f"“{NUMBERS[at].capitalize()}”"
    assert rest.startswith("goes from 0 to 30, not “")
    assert rest.endswith("”; it is 3.")
    assert len(sentence) < 90
    assert said(page.run()) == said(page)
    page.slider(key="place").set_value(4).run()
    assert (said(page) == []) == (at == 0)


@grid("name, asked", NUMBERS, ["0", "7", "30"])
def test_a_number_that_there_is_is_shown(name: str, asked: str) -> None:
    page = opened(numbered, **{name: asked})
    assert page.caption[NUMBERS.index(name)].value == asked
    assert said(page) == []

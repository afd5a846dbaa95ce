"""A choice is in the address, a bad one is said, and a token keeps its place in another text."""

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app import address
from explorer.app.address import whole_number
from explorer.app.address_parameters import Parameter
from tests.apps import run

NAMES = ("colour", "word", "place", "seed", "heat", "step")


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameters of these pages are in the table."""
    rows = {name: [Parameter(name, name.capitalize())] for name in NAMES}
    monkeypatch.setattr(address, "_ROWS", rows)


def few() -> None:
    import streamlit as st

    from explorer.app.controls import one_of

    usual = st.text_input("Usual", "green", key="usual")
    st.caption(one_of("colour", ("green", "red", "2 · Red", "mint (14)"), usual))


def listed() -> None:
    import streamlit as st

    from explorer.app.controls import token

    words = st.text_input("Words", "the black cat", key="words").split()
    st.caption(str(token("word", words, len(words) - 1)))


def numbered() -> None:
    import streamlit as st

    from explorer.app.controls import number, slider, whole
    from explorer.views.shared.step_slider import stepper

    st.caption(str(number("place", 30, 3)))
    st.caption(str(whole("seed", 0, 30, 3)))
    st.caption(f"{slider('heat', 0.0, 30.0, 3.0):g}")
    st.caption(str(stepper("step", 31, 3)))


def opened(page: object, **address: str) -> AppTest:
    at = AppTest.from_function(page, default_timeout=30)  # type: ignore[arg-type]
    for key, value in address.items():
        at.query_params[key] = value
    return run(at)


def shown(at: AppTest) -> str:
    return str(at.caption[0].value)


def said(at: AppTest) -> list[str]:
    return [each.value for each in at.text]


def test_one_of_a_few_follows_its_default_until_a_link_or_a_click_says_otherwise() -> None:
    at = opened(few)
    assert shown(at) == "green"
    at.text_input(key="usual").set_value("red").run()
    assert shown(at) == "red"
    at.segmented_control(key="colour").set_value("2 · Red").run()
    at.text_input(key="usual").set_value("green").run()
    assert shown(at) == "2 · Red"
    at = opened(few, colour="red")
    at.text_input(key="usual").set_value("2 · Red").run()
    assert (shown(at), said(at)) == ("red", [])


def test_what_is_not_among_the_few_is_said_until_something_else_is_chosen() -> None:
    at = opened(few, colour="blue")
    assert said(at) == ["“Colour” has no “blue” here; showing green."]
    assert said(at.run()) == said(at)
    at.segmented_control(key="colour").set_value("red").run()
    assert said(at) == []


def test_one_of_the_few_may_be_asked_for_in_other_letters_or_by_its_number() -> None:
    meant_by = {"RED": "red", "2": "2 · Red", "2 · Red": "2 · Red"}
    for asked, meant in {**meant_by, "its former name (14)": "mint (14)"}.items():
        at = opened(few, colour=asked)
        assert (shown(at), said(at)) == (meant, [])
        assert said(at.run()) == []


def test_a_token_follows_its_default_until_one_is_chosen_which_keeps_its_place() -> None:
    at = opened(listed)
    assert at.selectbox(key="word").options == ["0 · the", "1 · black", "2 · cat"]
    assert shown(at) == "2"
    at.text_input(key="words").set_value("a b c d e").run()
    assert shown(at) == "4"
    at = opened(listed, word="1 · black")
    for words, place in {"the black cat": "1", "a b c d e": "1", "a": "0"}.items():
        run(at.text_input(key="words").set_value(words))
        assert shown(at) == place


def test_a_token_that_is_not_there_is_said_and_replaced() -> None:
    for word in ["9 · dog", "1", "-1", "1 · nothing", "x" * 900]:
        at = opened(listed, word=word)
        assert shown(at) == "2"
        (sentence,) = said(at)
        assert sentence.startswith("“Word” has no “")
        assert sentence.endswith("here; showing 2 · cat.")
        assert len(sentence) < 90
        at.selectbox(key="word").set_value(0).run()
        assert said(at) == []


NUMBERS = ("place", "seed", "heat", "step")


def test_missing_numbers_are_said_alike_and_others_are_shown(subtests: pytest.Subtests) -> None:
    for asked in ["31", "x", "inf", "9" * 5_000]:
        with subtests.test(asked=asked):
            page = opened(numbered, **dict.fromkeys(NUMBERS, asked))
            assert [caption.value for caption in page.caption] == ["3"] * len(NUMBERS)
            sentences = said(page)
            for name, sentence in zip(NUMBERS, sentences, strict=True):
                assert sentence.startswith(f"“{name.capitalize()}” goes from 0 to 30, not “")
                assert sentence.endswith("”; showing 3.")
                assert len(sentence) < 90
            assert said(page.run()) == sentences
            page.slider(key="place").set_value(4).run()
            assert said(page) == sentences[1:]
    for asked in ["0", "7", "30"]:
        with subtests.test(asked=asked):
            page = opened(numbered, **dict.fromkeys(NUMBERS, asked))
            assert [caption.value for caption in page.caption] == [asked] * len(NUMBERS)
            assert said(page) == []


def test_a_whole_number_of_an_address_is_digits_and_below_its_count() -> None:
    for text, wanted in [("0", 0), ("01", 1), ("7", 7), ("9" * 9, 10**9 - 1)]:
        assert whole_number(text) == wanted
    for bad in ["", "-1", "x", "1.0", " 1", "1_0", "²", "9" * 5000, None]:
        assert whole_number(bad) is None
    assert [whole_number(text, 3) for text in "23"] == [2, None]

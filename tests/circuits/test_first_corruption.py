"""The corrupted text that a page begins with, by model and text."""

import pytest

from explorer.catalog.opened_model import opened_from
from explorer.catalog.shipped import SHIPPED
from explorer.circuits import first_corruption as module
from explorer.circuits.first_corruption import first_corruption
from explorer.circuits.outcome import LOGIT_DIFFERENCE
from explorer.circuits.text_pairs import TextPair, token_pair

FOUND = [
    ("induction", "abcdeabcdeab", "aecdbaecdbab"),
    ("induction-learned", "wordplaywordplay", "wordpyalwordpyay"),
    ("negation", "the food was not very good", "the food was really very good"),
    ("negation", "the hotel is never boring", "the hotel is always boring"),
    ("reviews", "I would not recommend this place", "I would really recommend this place"),
]


@pytest.mark.parametrize(("name", "clean", "corrupted"), FOUND)
def test_it_changes_what_the_model_says(name: str, clean: str, corrupted: str) -> None:
    opened = opened_from(SHIPPED / name, name)
    assert first_corruption(opened, clean) == corrupted
    pair = token_pair(opened, TextPair(clean, corrupted), LOGIT_DIFFERENCE)
    assert pair.clean_value > 0 > pair.corrupted_value


def test_the_second_of_a_name_becomes_another() -> None:
    shakespeare = opened_from(SHIPPED / "shakespeare", "shakespeare")
    clean = "When Tom and Ann met, Tom gave"
    candidates = module._candidates(clean, shakespeare.tokenizer.encode(clean))
    assert next(iter(candidates)) == "When Tom and Ann met, Ann gave"


def test_there_may_be_none() -> None:
    opened = opened_from(SHIPPED / "induction", "induction")
    for clean in ("", "a", "abc", "ab" * 300):
        assert first_corruption(opened, clean) == ""
    assert first_corruption(opened_from(SHIPPED / "reverse", "reverse"), "level level") == ""

"""The pairs that are counted are those that the library merges."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.text.learning import Learnt, learn

TEXT = (
    "the cat sat on the mat, the bat sat on the cat; a caterpillar and a category of "
    "catastrophes were concatenated. the 12 cats of 2012 were set at ease. Été à l'œuvre. "
) * 3


def agrees(learnt: Learnt) -> None:
    for step, rule in enumerate(learnt.rules):
        first = learnt.after(step).pairs[0]
        assert (first.left, first.right) == rule, step


def test_every_rule_is_the_first_of_the_pairs_counted_before_it() -> None:
    learnt = learn(TEXT, 120)
    assert len(learnt.rules) > 60
    assert learnt.after(len(learnt.rules)).pairs == (), "every word is one token"
    agrees(learnt)


@settings(max_examples=25)
@given(st.text("abcd é1,.\n", min_size=2, max_size=60))
def test_of_any_text_with_its_ties(text: str) -> None:
    agrees(learn(text, 30))


def test_tokens_become_fewer_by_what_was_merged() -> None:
    learnt = learn("aaaa abab abab", 10)
    counted = [learnt.after(step) for step in range(len(learnt.rules) + 1)]
    assert counted[0].tokens == len("aaaa abab abab")
    fewer = [before.tokens - after.tokens for before, after in pairwise(counted)]
    assert all(
        0 < less <= before.pairs[0].count for less, before in zip(fewer, counted[:-1], strict=True)
    )

"""What every task shares: when a pattern expects something of a map."""

from explorer.tasks import TASKS, pattern_of


def test_a_pattern_that_expects_nothing_is_none() -> None:
    """A score of it would be a mean over no rows: not a number."""
    negation = TASKS["negation"]
    neutral, telling = (
        negation.tokenizer.encode(text) for text in ("the film is", "the film is good")
    )
    square = (len(telling), len(telling))
    assert pattern_of(negation, neutral, (), (len(neutral), len(neutral))) is None
    pattern = pattern_of(negation, telling, (), square)
    assert pattern is not None
    assert pattern.any()
    assert pattern_of(negation, telling, (), (3, 4)) is None

"""Texts of lines that come with the app, to search for the top-activating lines of a head."""

from explorer.catalog.opened_model import Opened
from explorer.inference.trained_tokenizers import README, TRANSLATION, shipped_text
from explorer.system.limits import LINE_CHARACTERS

OF_TASK = "Examples of its task"
MOST_LINES = 300
"""Lines of each."""


def built_in_texts(opened: Opened) -> tuple[str, ...]:
    """The names of the texts for this model, that of its own task first."""
    return (*([OF_TASK] if _has_examples(opened) else []), TRANSLATION, README)


def built_in_lines(opened: Opened, name: str) -> tuple[str, ...]:
    """The first 300 different lines of one of them, without tables, code and too long ones."""
    text = _examples(opened) if name == OF_TASK else shipped_text(name)
    rows = (row.strip() for row in text.splitlines())
    prose = (row for row in rows if row[:1].isalpha() and LINE_CHARACTERS.allows(len(row)))
    return tuple(dict.fromkeys(prose))[:MOST_LINES]


def _has_examples(opened: Opened) -> bool:
    return opened.task is not None and len(opened.config.stacks) == 1


def _examples(opened: Opened) -> str:
    """What the task trains on, in batches from its own seed."""
    task = opened.task
    assert task is not None
    batches = (task.batch(step, task.training).inputs[0] for step in range(1, 6))
    rows = (row for batch in batches for row in batch.tolist())
    return "\n".join(task.tokenizer.decode(row) for row in rows)

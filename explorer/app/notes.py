"""Sentences that are said later than they are known, or longer than one run: one store for all.

A click is answered in the run after it. What is wrong with an address is said as long as what
is shown instead:

    keep_note("layer", "“Layer” has no “9” in this model; showing 0.", until=0)
    ...
    draw_notes("layer", picked)  # says it, run after run, until something but 0 is picked

Without `until` a sentence is said once, by whoever asks for it first.
"""

from explorer.app.messages import say
from explorer.app.session import state_of

CONTROL = "control "
"""Begins the key of a note beside a control."""
ONCE = object()
"""Until it was said."""


class Notes(dict[str, tuple[object, tuple[str, ...]]]):
    """By key, until what is chosen the sentences are said, and the sentences."""


def keep_note(key: str, *sentences: str, until: object = ONCE) -> None:
    """Say these, in place of those before, where `key` is asked for and `until` is chosen."""
    kept = state_of(Notes)
    kept.pop(key, None)
    if any(sentences):
        kept[key] = until, sentences


def take_notes(key: str, chosen: object = ONCE) -> tuple[str, ...]:
    """What is to be said now that this is chosen; what was said of another choice is dropped."""
    kept = state_of(Notes)
    until, sentences = kept.get(key, (chosen, ()))
    if until is ONCE or until != chosen:
        kept.pop(key, None)
    return sentences if until == chosen else ()


def draw_notes(key: str, chosen: object = ONCE) -> None:
    """Say what is to be said now that this is chosen."""
    for sentence in take_notes(key, chosen):
        say(sentence)


def kept_notes(key: str) -> tuple[str, ...]:
    """What is kept under this key, whatever is chosen now."""
    return state_of(Notes).get(key, (None, ()))[1]


def drop_notes(start: str) -> None:
    """Say no more what is kept under keys that start with this."""
    kept = state_of(Notes)
    for key in [key for key in kept if key.startswith(start)]:
        del kept[key]

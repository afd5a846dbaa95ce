"""One step from the typed text to the tokens, as plain data: every tokenizer's steps are these."""

from __future__ import annotations

from dataclasses import dataclass

TYPED = "The text as it was typed."
AROUND = "Add the special tokens that the model reads around the text."


@dataclass(frozen=True)
class Piece:
    """A part of the text: `text[start:end]`, how to show it, its number once it has one.

    `changed` marks what the step just made.
    """

    label: str
    start: int
    end: int
    id: int | None = None
    special: bool = False
    changed: bool = False


@dataclass(frozen=True)
class Step:
    """The text after one step, and what was done; `rank` is the merge rule's number."""

    action: str
    pieces: tuple[Piece, ...]
    rank: int | None = None

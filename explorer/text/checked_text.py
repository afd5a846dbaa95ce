"""Limits on texts: the errors that refuse a longer text, and how much of it would fit.

A text is never changed: one that cannot be read is refused, so that every span points into
exactly what was typed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.system.limits import LINE_CHARACTERS, LINES, Limit
from explorer.text.token import Token
from explorer.text.visible_text import readable_character

MAX_CHARACTERS = 20_000
"""Longest text that is tokenized for a page."""

BYTES_OF_CHARACTER = 4
"""The most in UTF-8: a file of too many bytes is refused before it is decoded."""
LARGEST_TEMPLATE = 200_000
"""Characters of a chat template that is shown or rendered."""


class TextError(ValueError):
    """A text or a tokenizer cannot be used; the message is one sentence for the reader.

    A word of a tokenizer's file that it quotes is in visible characters.
    """

    def __init__(self, sentence: str) -> None:
        keep = "\n\u2068\u2069"
        letters = (c if c.isprintable() or c in keep else readable_character(c) for c in sentence)
        super().__init__("".join(letters))


def checked(text: str, most: int | Limit = MAX_CHARACTERS) -> str:
    """The same text, once it is known to be short enough and to be valid Unicode."""
    if isinstance(most, Limit):
        most.check(len(text), TextError)
    elif len(text) > most:
        raise TextError(
            f"The text has {len(text):,} characters; the limit is {most:,}. Shorten it."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise TextError(
            f"Character {error.start + 1} (U+{code:04X}) is an unpaired surrogate; "
            "delete it and type it again."
        ) from None
    return text


def decoded(data: bytes) -> str:
    """The text of a file. TextError where it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextError(
            f"Line {line:,} of the file is not UTF-8 text; save it as UTF-8 and try again."
        ) from None


@dataclass(frozen=True)
class Cut:
    """One or two texts (the second is "" where there is none), and the beginnings that fit."""

    text: str
    pair: str
    kept_text: str
    kept_pair: str

    @property
    def in_words(self) -> str:
        """The part that fits, as the end of a sentence that begins with "shorten it to"."""
        first = f"its first {len(self.kept_text):,} characters"
        if not self.pair:
            return first
        if self.kept_pair:
            return f"all of it and the first {len(self.kept_pair):,} characters of the second"
        return f"{first}, without the second"


class ForwardPassError(ValueError):
    """A text has no forward pass; the message says what to do, `cut` how much of it would fit."""

    def __init__(self, sentence: str, cut: Cut | None = None) -> None:
        super().__init__(sentence)
        self.cut = cut


def truncate(
    encode: Callable[[str, str | None], Sequence[Token]], text: str, pair: str, most: int
) -> Cut | None:
    """The beginnings of both texts that have at most `most` tokens; None where nothing fits.

    The second text is cut first. The rest is encoded again, since the beginning of a word may
    have other tokens than the whole word.
    """
    kept_text, kept_pair = text, pair
    while kept_text and (over := len(tokens := encode(kept_text, kept_pair or None)) - most) > 0:
        starts = [t.start for t in tokens if t.end > t.start and t.second == bool(kept_pair)]
        end = starts[-over] if over < len(starts) else 0
        if kept_pair:
            kept_pair = kept_pair[:end].rstrip()
        else:
            kept_text = kept_text[:end].rstrip()
    return Cut(text, pair, kept_text, kept_pair) if kept_text.strip() else None


def lines_in(text: str) -> tuple[str, ...]:
    """The different lines of a text, in their order, without empty ones. TextError says why not."""
    rows = [line.strip() for line in text.splitlines()]
    lines = [*dict.fromkeys(row for row in rows if row)]
    if not lines:
        raise TextError("There is no line to read yet: type or upload a text.")
    LINES.check(len(lines), TextError)
    longest = max(map(len, lines))
    LINE_CHARACTERS.check(longest, TextError)
    return tuple(checked(line, LINE_CHARACTERS) for line in lines)

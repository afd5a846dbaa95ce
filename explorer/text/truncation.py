"""Why a text has no forward pass, and how much of it would have one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorer.text import Token


@dataclass(frozen=True)
class Cut:
    """A text and a second one ("" where there is none), and the beginnings of both that fit."""

    text: str
    pair: str
    kept_text: str
    kept_pair: str

    @property
    def said(self) -> str:
        """What is kept, as it goes on after "shorten it to"."""
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
    """The beginnings that become at most `most` tokens; None where there are none.

    The second text is cut first. What is cut is encoded again, since the beginning of a word
    may become other tokens than it is part of.
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

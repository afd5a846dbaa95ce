"""The lines that learn a tokenizer from a text and show one step of it."""

from __future__ import annotations

from collections.abc import Callable

from explorer.inference import trained_tokenizers
from explorer.text.unigram import UNIGRAM

LONGEST = 2_500
"""Characters of a text that are pasted; of a longer one the name of a file stands there."""


def tokenizer_training_code(
    name: str, text: str, way: str, most: int, step: int
) -> Callable[[], str]:
    """What one step shows, of the text of this name."""
    return lambda: _pasted(name, text, way, most, step)


def _pasted(name: str, text: str, way: str, most: int, step: int) -> str:
    lines = ["from explorer.inference import trained_tokenizers", "", *_text(name, text)]
    if way == UNIGRAM:
        lines += [
            f"size = trained_tokenizers.sizes(text, {most})[{step}]",
            "pieces = trained_tokenizers.pieces(text, size).pieces",
            "print(pieces[1:13])",
        ]
    else:
        lines += [
            f"found = trained_tokenizers.rules(text, {most}, {way!r})",
            f"counted = found.after({step})",
            "for pair in counted.pairs:",
            "    print(found.tokens[pair.left], found.tokens[pair.right], pair.count)",
            "print(counted.tokens)",
        ]
    return "\n".join(lines) + "\n"


def _text(name: str, text: str) -> list[str]:
    if name in trained_tokenizers.TEXTS:
        return [f"text = trained_tokenizers.shipped({name!r})"]
    if len(text) <= LONGEST:
        return [f"text = {text!r}"]
    return ['text = open("your text.txt", encoding="utf-8-sig", newline="").read()']

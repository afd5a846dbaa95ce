"""The code that trains a tokenizer on a text and shows one step."""

from __future__ import annotations

from collections.abc import Callable

from explorer.inference import trained_tokenizers
from explorer.text.unigram import UNIGRAM

LONGEST = 2_500
"""Characters of a text in the code; a longer one is read from a file."""


def tokenizer_training_code(
    name: str, text: str, algorithm: str, most: int, step: int
) -> Callable[[], str]:
    """The code of one step with the text of this name."""
    return lambda: _pasted(name, text, algorithm, most, step)


def _pasted(name: str, text: str, algorithm: str, most: int, step: int) -> str:
    lines = ["from explorer.inference import trained_tokenizers", "", *_text(name, text)]
    if algorithm == UNIGRAM:
        lines += [
            f"size = trained_tokenizers.unigram_sizes(text, {most})[{step}]",
            "pieces = trained_tokenizers.unigram_pieces(text, size).pieces",
            "print(pieces[1:13])",
        ]
    else:
        lines += [
            f"found = trained_tokenizers.trained_merges(text, {most}, {algorithm!r})",
            f"counted = found.counts_after({step})",
            "for pair in counted.pairs:",
            "    print(found.tokens[pair.left], found.tokens[pair.right], pair.count)",
            "print(counted.tokens)",
        ]
    return "\n".join(lines) + "\n"


def _text(name: str, text: str) -> list[str]:
    if name in trained_tokenizers.TEXTS:
        return [f"text = trained_tokenizers.shipped_text({name!r})"]
    if len(text) <= LONGEST:
        return [f"text = {text!r}"]
    return ['text = open("your text.txt", encoding="utf-8-sig", newline="").read()']

"""How tokens of the vocabulary are called on the page “Embedding space”."""

from collections.abc import Sequence

from explorer.text import AnyTokenizer
from explorer.text.token_labels import candidate_text, labels_of


def vocabulary_labels(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """How to show these tokens; an ID that the vocabulary leaves free is shown as `<50300>`."""
    return [candidate_text(label) for label in labels_of(tokenizer, ids)]

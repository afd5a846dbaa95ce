"""How tokens of the vocabulary are called on the page “Embedding space”."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.text import AnyTokenizer, PublishedTokenizer
from explorer.text.token_labels import candidate_text


def vocabulary_labels(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """How to show these tokens; an ID that the vocabulary leaves free is shown as `<50300>`."""
    if isinstance(tokenizer, PublishedTokenizer):
        labels = tokenizer.labels(ids)  # one question to its process
    else:
        used = tokenizer.vocab_size
        labels = [tokenizer.label(token) if token < used else f"<{token}>" for token in ids]
    return [candidate_text(label) for label in labels]

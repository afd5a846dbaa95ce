"""How many tokens are shown, asked of their tokenizer at once."""

from collections.abc import Sequence

from explorer.text import AnyTokenizer, PublishedTokenizer


def labels_of(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """The label of each token; an ID that the vocabulary leaves free is `<50300>`."""
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.labels(ids)  # one question to its process
    used = tokenizer.vocab_size
    return [tokenizer.label(token) if token < used else f"<{token}>" for token in ids]

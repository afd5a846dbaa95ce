"""Whether a model of the list can read all of a text, found without its weights."""

from __future__ import annotations

from explorer.catalog.available_models import ModelEntry
from explorer.catalog.tokenizers import tokenizer_in
from explorer.inference.forward_pass import ForwardPassError, encode_text, unknown_words
from explorer.text import PublishedTokenizer, TextError
from models.loading.checkpoint import CheckpointError


def why_unreadable(
    entry: ModelEntry, text: str, pair: str = "", *, reads_prompts: bool = False
) -> str:
    """What this model cannot read of a text, or pair of texts, in a sentence; empty if nothing.

    A text that is too long is not read at all, an unknown word as the token for such words.
    Of a model that cannot be opened it is why not. With `reads_prompts` the special tokens that
    are written in the text are read as such.
    """
    if entry.config is None:
        return str(entry.fault)
    try:
        tokenizer = tokenizer_in(entry.folder, entry.family, entry.config)
        if reads_prompts and isinstance(tokenizer, PublishedTokenizer):
            tokenizer = tokenizer.reading_prompts()
        tokens = encode_text(tokenizer, entry.config, text, pair, reader=entry.short_name)
        words, name = unknown_words(tokenizer, text, pair, tokens)
    except (ForwardPassError, TextError, CheckpointError, OSError) as error:
        return str(error)
    return f"{entry.short_name} does not know {words} and reads {name} instead." if words else ""

"""The tokenizers of published folders, opened and used in a process of their own."""

from explorer.text.published.adopted import AdoptedTokenizer, adopted_json, is_adopted
from explorer.text.published.published_tokenizer import (
    ParentTokenizer,
    PublishedTokenizer,
    open_published,
)

__all__ = [
    "AdoptedTokenizer",
    "ParentTokenizer",
    "PublishedTokenizer",
    "adopted_json",
    "is_adopted",
    "open_published",
]

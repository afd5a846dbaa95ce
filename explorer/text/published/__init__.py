"""The tokenizers of published folders, opened and used in a process of their own."""

from explorer.text.published.adopted import AdoptedTokenizer, adopted_json, is_adopted
from explorer.text.published.published_tokenizer import PublishedTokenizer, open_published
from explorer.text.published.training_tokenizer import ParentTokenizer

__all__ = [
    "AdoptedTokenizer",
    "ParentTokenizer",
    "PublishedTokenizer",
    "adopted_json",
    "is_adopted",
    "open_published",
]

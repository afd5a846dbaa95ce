"""The tokenizers of published folders, opened and used in a process of their own."""

from explorer.text.published.published_tokenizer import PublishedTokenizer, open_published

__all__ = ["PublishedTokenizer", "open_published"]

"""Whether a model can read a text, told from its folder alone."""

from __future__ import annotations

from pathlib import Path

from explorer.catalog.available_models import ModelEntry
from explorer.inference.readable_text import why_unreadable


def test_a_model_that_cannot_be_opened_reads_nothing_and_says_why() -> None:
    fault = "There is no checkpoint folder here."
    entry = ModelEntry("here", "Here", Path("here"), None, {}, fault=fault)
    assert why_unreadable(entry, "a text") == fault

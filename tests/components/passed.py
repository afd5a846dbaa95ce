"""A shaken model of every kind and its pass over a text, the same in every process."""

import tempfile
from functools import lru_cache
from pathlib import Path

from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass, run_batch_uncached
from explorer.text import word_tokenizer
from explorer.text.special import DECODER, SOURCE
from tests.analysis.conftest import MODELS, TEXT
from tests.tiny import WORDS, save_model, shake


@lru_cache
def passed(kind: str) -> tuple[Opened, ForwardPass]:
    special = SOURCE if MODELS[kind]["kind"] == "encoder-decoder" else DECODER
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), kind, word_tokenizer(WORDS, special), "the cat", **MODELS[kind])
        opened = opened_model.opened_from(Path(folder) / kind, kind)
    shake(opened.model, by=0.4)
    return opened, run_batch_uncached(opened, (TEXT,))[0]

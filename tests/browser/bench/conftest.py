"""The attention bench by hand: one app beside a folder of published models, and no mishap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer.text import character_tokenizer
from explorer.text.special import DECODER
from tests import zoo
from tests.browser.conftest import serve
from tests.browser.visiting import Visitor
from tests.served import Server
from tests.shelf import put


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our own models, and bert, gpt2 and t5 as the reference library saves them.

    Beside them one of each that reads 2,048 tokens: long, and long-gpt2.
    """
    folder = zoo.zoo(tmp_path_factory.mktemp("zoo"))
    zoo.long_gpt2(folder / "long-gpt2")
    letters = character_tokenizer("abcdefghijklmnopqrstuvwxyz .", DECODER)
    put(folder, "long", letters, "a bc", kind="decoder", n_layers=2, n_heads=4, max_len=2_048)
    runs = tmp_path_factory.mktemp("served") / "runs"
    yield from serve(runs, EXPLORER_MODELS=str(folder), HF_HUB_OFFLINE="1")


@pytest.fixture(autouse=True)
def _nothing_went_wrong(visitor: Visitor) -> Iterator[None]:
    yield
    visitor.no_traceback()
    assert visitor.violations() == []
    assert visitor.notes.errors == []

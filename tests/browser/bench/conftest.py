"""The attention bench by hand: one app beside a folder of published models, and no mishap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import zoo
from tests.browser.conftest import serve
from tests.browser.visiting import Visitor
from tests.served import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our own models, and bert, gpt2 and t5 as the reference library saves them."""
    folder = zoo.zoo(tmp_path_factory.mktemp("zoo"))
    runs = tmp_path_factory.mktemp("served") / "runs"
    yield from serve(runs, EXPLORER_MODELS=str(folder), HF_HUB_OFFLINE="1")


@pytest.fixture(autouse=True)
def _nothing_went_wrong(visitor: Visitor) -> Iterator[None]:
    yield
    visitor.no_traceback()
    assert visitor.violations() == []
    assert visitor.notes.errors == []

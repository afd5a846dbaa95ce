"""One running app for the tests of this folder that ask a real one, as a reader's browser does."""

from collections.abc import Iterator

import pytest

from explorer.text.special import CLASSIFIER
from tests.served import Server
from tests.shelf import WORDS, put, shelf, word_tokenizer

TOKEN = "correct horse battery"


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app beside small models and a long one; it has a token and takes messages at any rate."""
    models = shelf(tmp_path_factory.mktemp("checkpoints"))
    words = word_tokenizer(WORDS, CLASSIFIER)
    long = {"kind": "encoder", "head": "language-model", "n_layers": 2, "n_heads": 4}
    put(models, "long", words, "the black cat", max_len=512, **long)
    env = {
        "EXPLORER_CHECKPOINTS": str(models),
        "EXPLORER_LIMIT_MESSAGE_RATE": "1000000",
        "EXPLORER_ADMIN_TOKEN": TOKEN,
    }
    with Server(tmp_path_factory.mktemp("served") / "runs", env=env) as server:
        yield server
        assert server.tracebacks == []

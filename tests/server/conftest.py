"""One running app for the tests of this folder that ask a real one, as a reader's browser does."""

from collections.abc import Iterator

import pytest

from tests.served import Server
from tests.tiny import save_small_models

TOKEN = "correct horse battery"


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app beside small models; it has a token and takes messages at any rate."""
    models = save_small_models(tmp_path_factory.mktemp("checkpoints"))
    env = {
        "EXPLORER_CHECKPOINTS": str(models),
        "EXPLORER_LIMIT_MESSAGE_RATE": "1000000",
        "EXPLORER_ADMIN_TOKEN": TOKEN,
    }
    with Server(tmp_path_factory.mktemp("served") / "runs", env=env) as server:
        yield server
        assert server.tracebacks == []

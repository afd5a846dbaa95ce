"""A stranger with a hostile model and a link: what the server does, seen from outside."""

from pathlib import Path

import psutil
import pytest

from explorer.app.reader import owner_of
from explorer.catalog.available_models import brought_model
from explorer.catalog.uploads import Uploader, keep_upload
from explorer.system.data_folders import uploads_root
from tests.calls import run_in_thread
from tests.reader import Answer, Reader
from tests.served import Server
from tests.server.test_head_alone import texts
from tests.tiny import million_positions

LETTERS = "a" * 300
BYTES = 300_000_000
"""Less than what one pass over all tokens would take: eight billion."""


def uploaded(reader: Reader, folder: Path) -> str:
    """The name in links of a reader's model."""
    files = {f"model/{path.name}": path for path in folder.iterdir()}
    streams = {name: path.open("rb") for name, path in files.items()}
    sizes = {name: path.stat().st_size for name, path in files.items()}
    whose = Uploader("", owner_of(reader.key))
    kept = keep_upload(streams, sizes, uploads_root(), whose, lambda at: brought_model(at).fault)
    return brought_model(kept.folder).name


def test_row_1_one_link_to_a_long_text_ends_in_a_sentence(
    app: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13 KB and 300 letters were 27,000 tokens, 8 GB in 34 seconds, and the end of the server."""
    monkeypatch.setenv("EXPLORER_RUNS", str(app.runs))
    million_positions(tmp_path / "model")

    async def visit(page: str) -> Answer:
        reader = Reader(app.url, page=page)
        name = uploaded(reader, tmp_path / "model")
        reader.query = f"model={name}&text={LETTERS}"
        await reader.open()
        try:
            return await reader.act()
        finally:
            await reader.close()

    held = psutil.Process(app.pid).memory_info().rss
    for page in ("", "generation"):
        answer = run_in_thread(visit(page))
        assert "has 27,000 tokens; the limit is 4,096 tokens" in "\n".join(texts(answer)), page
        assert answer.failures == []
    assert psutil.Process(app.pid).memory_info().rss - held <= BYTES
    assert app.tracebacks == []

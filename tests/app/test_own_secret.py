"""The secret of an installation: made once, for all replicas, and read by nobody else."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from explorer.app import reader
from explorer.app.reader import network_of

ADDRESS = "192.0.2.1"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def as_another_process(text: str) -> str:
    reader._of.cache_clear()
    return reader.digest(text)


def test_no_network_is_found_by_trying_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the file, which the server's user alone reads."""
    monkeypatch.setattr(reader.st, "context", type("Context", (), {"ip_address": ADDRESS}))
    said = reader.network_digest()
    assert said == reader.network_digest() == as_another_process(network_of(ADDRESS))
    assert said != sha256(ADDRESS.encode()).hexdigest()[:32]
    file = root / reader.OWN_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(root.iterdir()) == [file], "nothing is left of its making"
    monkeypatch.setenv("EXPLORER_RUNS", str(root / "of another installation"))
    assert reader.network_digest() != said


def test_replicas_that_start_together_have_one(root: Path) -> None:
    make = reader._of.__wrapped__
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(make, [root / reader.OWN_FILE] * 40))
    assert len(found) == 1


def test_one_that_others_could_read_or_that_is_cut_is_made_anew(root: Path) -> None:
    before = reader.digest(ADDRESS)
    file = root / reader.OWN_FILE
    file.chmod(0o644)
    after = as_another_process(ADDRESS)
    assert after != before
    file.write_bytes(b"")
    assert as_another_process(ADDRESS) not in {before, after}
    assert file.stat().st_mode & 0o777 == 0o600


def test_one_removed_meanwhile_is_made_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looks_too_late(file: Path) -> bool:
        file.unlink()
        return False

    reader.digest(ADDRESS)
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_is_private", looks_too_late)
        said = as_another_process(ADDRESS)
    assert as_another_process(ADDRESS) == said


def test_where_nothing_can_be_written_it_lasts_as_long_as_the_server(root: Path) -> None:
    root.write_text("no folder")
    said = reader.digest(ADDRESS)
    assert reader.digest(ADDRESS) == said != as_another_process(ADDRESS)

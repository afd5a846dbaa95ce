"""The secret of an installation, read by nobody else; whether a reader sits at its machine."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.datastructures import Headers

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


HERE = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


def sits_here(monkeypatch: pytest.MonkeyPatch, address: str | None, **headers: str) -> bool:
    """What is said of a reader with these headers, of a server that listens at this address."""
    named = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    context = SimpleNamespace(headers=named)
    st = SimpleNamespace(context=context, get_option=lambda _: address)
    monkeypatch.setattr(reader, "st", st)
    return reader.is_local()


def test_a_reader_is_local_where_nobody_else_can_come(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("localhost", "127.0.0.1", "127.1.2.3", "::1"):
        for host in ("localhost:8501", "127.0.0.1:8501", "[::1]:8501", "localhost"):
            for scheme in ("http", "https"):
                origin = f"{scheme}://{host}"
                assert sits_here(monkeypatch, address, Host=host, Origin=origin), (address, origin)
    for anywhere in ("0.0.0.0", "::", "192.168.0.7", "explorer.example", "unix:///x", "", None):
        assert not sits_here(monkeypatch, anywhere, **HERE), anywhere
    for host in ("explorer.example", "192.168.0.7:8501", "localhost.example", "[::1", "", "@"):
        assert not sits_here(monkeypatch, "localhost", **HERE | {"Host": host}), host
    assert not sits_here(monkeypatch, "localhost"), "a reader of whom nothing is known"
    for name in ("X_Forwarded_For", "x_forwarded_host", "Forwarded", "X_Real_IP", "Via"):
        assert not sits_here(monkeypatch, "localhost", **HERE, **{name: "1.2.3.4"}), name


def test_a_silent_proxy_is_known_by_the_address_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for `localhost:8501`, as its settings name the server, and hands the origin on."""
    for origin in (
        *("https://explorer.example.com", "http://192.168.0.7:8501", "http://localhost.example"),
        *("https://explorer.example.com/http://localhost", "http://localhost@explorer.example"),
        *("null", "", "http://", "http://[::1", "file://"),
    ):
        assert not sits_here(monkeypatch, "localhost", **HERE | {"Origin": origin}), origin
    assert not sits_here(monkeypatch, "localhost", Host=HERE["Host"]), "no browser leaves it out"

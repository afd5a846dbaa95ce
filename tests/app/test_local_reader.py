"""Whether a reader sits at the machine of the app: by the server's address and the headers."""

from types import SimpleNamespace

import pytest
from starlette.datastructures import Headers

from explorer.app import reader

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

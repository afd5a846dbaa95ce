"""Row 11: who comes when the server is full reads a sentence, and who leaves makes room."""

import asyncio
import resource
from contextlib import nullcontext
from socket import IPPROTO_TCP, TCP_NODELAY
from socket import socket as tcp
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit import net_util, runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from uvicorn import Config
from uvicorn.server import ServerState

from explorer.app import streamlit_patches
from explorer.app.reader import COOKIE
from explorer.server import connection_limits
from explorer.server.connection_limits import HTTP, MOST_FILES, ConnectionLimits, client_network
from explorer.system.limits import SESSIONS, SESSIONS_OF_ADDRESS
from tests.server.asking import Inside, ask, asked, in_a_loop, scope_of


def socket(client: str = "127.0.0.1", key: str = "") -> dict[str, Any]:
    cookie = {"cookie": f"{COOKIE}={key}"} if key else {}
    return scope_of("/_stcore/stream", cookie, kind="websocket", client=client)


def full_of_those_who_stay() -> tuple[Inside, ConnectionLimits]:
    """Who comes in stays until `let_go` is set."""
    inside = Inside()
    inside.let_go.clear()
    return inside, ConnectionLimits(inside)


async def connected(server: ConnectionLimits, *scopes: dict[str, Any]) -> list[asyncio.Task[Any]]:
    """Connections that stay open until what is inside lets them go."""
    tasks = [asyncio.create_task(asked(server, each)) for each in scopes]
    await asyncio.sleep(0)
    return tasks


@in_a_loop
async def test_who_comes_when_it_is_full_reads_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS", "2")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket(key="a" * 32), socket())
    open_page = scope_of("/_stcore/health", {"accept": "*/*"})  # shows what else than 200 it gets
    assert (await asked(ConnectionLimits(Inside()), open_page)).status == 200
    for scope in (socket(), scope_of("/attention"), open_page):
        answer = await asked(server, scope)
        assert (answer.status, answer.sentence) == (503, SESSIONS.refusal())
        assert answer.headers["retry-after"] == "60"
    assert (await asked(server, scope_of("/static/a.js", {"accept": "*/*"}))).status == 200
    inside.let_go.set()
    await asyncio.gather(*there)
    assert (await asked(server, socket())).status == 101, "who left made room"
    assert (server.connected, server.by_network, server.by_reader) == (0, {}, {})


@in_a_loop
async def test_only_a_reload_is_let_in_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tab would be a page whose connection is refused."""
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS", "1")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket(key="a" * 32))
    reloads = [("a", "max-age=0", 200), ("a", "no-cache", 200)]
    for key, cache, status in [*reloads, ("a", "", 503), ("b", "max-age=0", 503)]:
        headers = {"cookie": f"{COOKIE}={key * 32}", "cache-control": cache}
        assert (await asked(server, scope_of("/attention", headers))).status == status, headers
    inside.let_go.set()
    await asyncio.gather(*there)


@in_a_loop
async def test_one_network_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_SESSIONS_OF_ADDRESS", "1")
    inside, server = full_of_those_who_stay()
    there = await connected(server, socket("192.0.2.1"), socket("2001:db8::1"))
    for client in ("192.0.2.1", "::ffff:192.0.2.1", "2001:db8::ffff"):
        answer = await asked(server, socket(client))
        assert (answer.status, answer.sentence) == (503, SESSIONS_OF_ADDRESS.refusal())
    inside.let_go.set()
    for client in ("192.0.2.2", "2001:db8:0:1::1"):
        assert (await asked(server, socket(client))).status == 101, client
    await asyncio.gather(*there)


def test_whoever_leaves_is_counted_out() -> None:
    """Also where a connection breaks, or comes from no address."""

    async def broken(scope: object, receive: object, send: object) -> None:
        raise OSError

    for inside, client, ends in ((broken, ("192.0.2.1", 1), OSError), (Inside(), None, ())):
        server = ConnectionLimits(inside)
        for _ in range(3):
            with pytest.raises(ends) if ends else nullcontext():
                ask(server, {**socket(), "client": client})
        assert (server.connected, server.by_network, server.by_reader) == (0, {}, {})
    assert client_network({"client": None}) == ""
    assert client_network({"client": ("a socket", 0)}) == "a socket"


def test_it_is_full_when_files_are_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ConnectionLimits(Inside())
    assert ask(server, socket()).status == 101
    monkeypatch.setattr(connection_limits, "files_are_scarce", lambda: True)
    assert ask(server, socket()).sentence == SESSIONS.refusal()


def test_the_soft_limit_of_open_files_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"limits": (1_024, 4_096)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: now["limits"])
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: now.update(limits=pair))
    for before, after in [
        ((1_024, 4_096), (4_096, 4_096)),
        ((1_024, resource.RLIM_INFINITY), (MOST_FILES, resource.RLIM_INFINITY)),
        ((1_024, 10**9), (MOST_FILES, 10**9)),
        ((10**6, 10**6), (10**6, 10**6)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY),) * 2,
    ]:
        now["limits"] = before
        connection_limits.raise_file_limit()
        assert now["limits"] == after, before


def test_small_messages_wait_for_no_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_connection_made", Mock())
    with tcp() as line:
        assert not line.getsockopt(IPPROTO_TCP, TCP_NODELAY)
        about = Mock(**{"get_extra_info.return_value": line})
        connection_limits.connection_made(Mock(connections=()), about)
        assert line.getsockopt(IPPROTO_TCP, TCP_NODELAY)


def test_half_of_the_files_are_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(Inside(), log_config=None)
    config.load()
    monkeypatch.setattr(HTTP, "connection_made", HTTP.connection_made)
    connection_limits.limit_connections()
    for soft, closed in [(4, [False, False, True]), (resource.RLIM_INFINITY, [False] * 3)]:
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        state, lines = ServerState(), [Mock(**{"get_extra_info.return_value": None}) for _ in "abc"]
        for line in lines:
            kind: Any = config.http_protocol_class
            kind(config, state, {}, Mock()).connection_made(line)
        assert [line.close.called for line in lines] == closed
        assert [SESSIONS.refusal() in str(line.write.call_args) for line in lines] == closed


def test_a_request_of_many_lines_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(Inside(), log_config=None, http="h11")
    config.load()
    monkeypatch.setattr(HTTP, "connection_made", HTTP.connection_made)
    connection_limits.limit_connections()
    for lines, refused in ((20, False), (1_000, True)):
        line = Mock(**{"get_extra_info.return_value": None})
        kind: Any = config.http_protocol_class
        connection = kind(config, ServerState(), {}, Mock())
        connection.connection_made(line)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:b\r\n" * lines + b"\r\n")
        assert (b"400" in b"".join(each.args[0] for each in line.write.call_args_list)) == refused


def test_files_are_scarce_when_nearly_all_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, used, scarce in [(1_024, 768, False), (1_024, 769, True), (100, 76, True)]:
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        monkeypatch.setattr(connection_limits.os, "listdir", lambda path, used=used: ["0"] * used)
        assert connection_limits.files_are_scarce() == scarce, (soft, used)


def test_sessions_whose_readers_left_give_theirs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit ends them when the next reader leaves, which may be never."""
    kept, long_gone = MemorySessionStorage(), MemorySessionStorage(ttl_seconds=0)
    left: Any = SimpleNamespace(session=Mock(id="a"))
    for storage, ended in [(kept, 0), (long_gone, 1)]:
        storage.save(left)
        manager = SimpleNamespace(_session_storage=storage)
        monkeypatch.setattr(runtime, "get_instance", lambda m=manager: Mock(_session_mgr=m))
        assert left.session.shutdown.call_count == 0
        assert streamlit_patches.end_left_sessions() == ended
        assert left.session.shutdown.call_count == ended
        assert streamlit_patches.end_left_sessions() == 0


def test_no_host_is_asked_for_addresses() -> None:
    ours = streamlit_patches.ask_nobody_for_addresses
    assert (net_util, "get_external_ip", ours) in streamlit_patches.REPLACED
    assert ours() is None

"""What one connection may say: what is no message closes it, what no reader sends is dropped."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from explorer.app.streamlit_patches import KNOWN_MESSAGES, WIDGETS, is_for_readers
from explorer.server.incoming_messages import (
    AT_ONCE,
    KEPT_AFTER,
    LARGE,
    NO_MESSAGE,
    OF_A_NETWORK,
    TOO_LONG,
    Messages,
    Pace,
)
from tests.calls import run_in_thread
from tests.server.asking import Answer, Inside, ask, asked, scope_of


def say(*said: Any) -> tuple[Inside, Answer]:
    inside = Inside()
    socket = scope_of("/_stcore/stream", kind="websocket")
    return inside, ask(Messages(inside, is_for_readers), socket, said)


def message(**fields: Any) -> bytes:
    return BackMsg(**fields).SerializeToString()


RERUN = message(rerun_script={"query_string": "head=1"})


def test_what_a_reader_sends_passes_and_what_no_reader_needs_is_dropped() -> None:
    """One of them would clear the caches of everybody, another have git look through the folder."""
    uploads = message(file_urls_request={"file_names": ["a"]})
    dropped = [message(clear_cache=True), message(load_git_info=True), b""]
    for crowded in (
        {"widget_states": {"widgets": [{"id": str(each)} for each in range(WIDGETS + 1)]}},
        {"cached_message_hashes": [""] * (KNOWN_MESSAGES + 1)},
    ):
        dropped.append(message(rerun_script=crowded))
    dropped += [message(set_run_on_save=True), message(debug_shutdown_runtime=True)]
    passing = [RERUN, uploads, message(app_heartbeat=True), message(stop_script=True)]
    inside, answer = say(*dropped, *passing, *dropped)
    assert inside.heard == passing
    assert answer.sent == []


@pytest.mark.parametrize("junk", [b"\xff\xff", RERUN[:-1], {"text": "hello"}])
def test_what_is_no_message_closes_the_connection_without_a_stack(
    junk: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "explorer")
    frame = {"type": "websocket.receive", **junk} if isinstance(junk, dict) else junk
    inside, answer = say(RERUN, frame, RERUN)
    assert inside.heard == [RERUN]
    (closed,) = answer.sent
    assert (closed["type"], closed["code"]) == ("websocket.close", NO_MESSAGE)
    assert all(record.exc_info is None for record in caplog.records)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each message had to wait, in a time that does not pass."""
    seconds: list[float] = []
    sleep = asyncio.sleep

    async def note(time: float) -> None:
        seconds.append(time)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    return seconds


def test_who_says_too_much_waits_and_is_heard(
    waited: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "10")
    inside, _ = say(*[RERUN] * 200)
    assert len(inside.heard) == 200
    assert waited[0] == 0
    assert waited[-1] > 10, "200 of them take 15 seconds and some"
    waited.clear()
    say(*[message(rerun_script={"page_name": "a" * LARGE * 30})] * 3)
    assert waited[0] == 0
    assert waited[-1] > 3, "a long one counts as many: three seconds each, and five are free"


SHORT, LONG = b"a" * LARGE, b"a" * 2 * LARGE


class Talks:
    """Readers of one server, each with a connection; a clock is turned on by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages = Messages(Inside(), lambda _: True)
        self.later: list[Callable[[], None]] = []

        def call_later(_loop: Any, seconds: float, what: Callable[..., None], *args: Any) -> None:
            assert seconds == KEPT_AFTER
            self.later.append(lambda: what(*args))

        monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", call_later)
        monkeypatch.setattr(Pace, "wait", lambda *_: 0)

    def say(self, client: str, *said: bytes) -> bool:
        """Whether all of it was heard, before this reader left."""
        scope = scope_of("/_stcore/stream", kind="websocket", client=client)
        sent = ask(self.messages, scope, said).sent
        assert [each["code"] for each in sent] == [TOO_LONG] * len(sent)
        return sent == []

    def go_on(self) -> None:
        due, self.later = self.later, []
        for each in due:
            each()


def test_the_connections_of_a_network_share_what_some_may_say(
    waited: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message costs the loop some milliseconds at worst, whoever it is for."""

    async def talk(*clients: str) -> None:
        messages = Messages(Inside(), is_for_readers)
        scopes = (scope_of("/", kind="websocket", client=client) for client in clients)
        await asyncio.gather(*(asked(messages, scope, [RERUN] * AT_ONCE) for scope in scopes))

    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGE_RATE", "1")
    run_in_thread(talk(*["192.0.2.1"] * OF_A_NETWORK, "192.0.2.2"))
    assert max(waited) == 0
    run_in_thread(talk(*["192.0.2.1"] * 2 * OF_A_NETWORK))
    assert max(waited) > AT_ONCE - 1


def test_long_messages_of_all_and_of_a_network_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_MESSAGES_BYTES", str(8 * LARGE))
    monkeypatch.setenv("EXPLORER_LIMIT_NETWORK_SHARE", "50")
    talks = Talks(monkeypatch)
    assert talks.say("192.0.2.1", LONG, SHORT, LONG), "the longest of a connection counts, once"
    assert talks.say("192.0.2.1", LONG)
    assert not talks.say("192.0.2.1", LONG), "the half that one network may have"
    assert talks.say("192.0.2.1", SHORT), "who is brief is always heard"
    assert talks.say("192.0.2.2", LONG)
    assert talks.say("192.0.2.3", LONG)
    assert not talks.say("192.0.2.4", LONG), "all there is"
    talks.go_on()
    assert talks.say("192.0.2.4", LONG), "the sessions of those who left are gone"


def test_a_moment_of_many_is_free_and_then_they_come_in_step() -> None:
    pace = Pace(10)
    begun = [pace.wait(100.0) for _ in range(AT_ONCE * 10)]
    assert set(begun) == {0.0}
    assert [round(pace.wait(100.0), 6) for _ in range(3)] == [0.1, 0.2, 0.3]
    assert round(pace.wait(100.4), 6) == 0.0
    assert pace.wait(1_000.0) == 0.0


def test_what_is_no_websocket_passes() -> None:
    assert ask(Messages(Inside(), is_for_readers), scope_of()).status == 200

"""What is uploaded counts from its first byte; what is too much is refused before it is read."""

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from starlette.types import Message

from explorer.app import reader
from explorer.app.received_uploads import LEAST_COUNTED, TAKEN_OUT
from explorer.server import upload_limits
from explorer.server.upload_limits import UploadLimits
from explorer.system import limits
from explorer.system.limits import MB
from tests.calls import run_in_thread
from tests.server.asking import Answer, in_a_loop
from tests.server.uploading import AROUND, BLOCK, HEAD, TAIL, World, bound, form, open_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return open_world(monkeypatch)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of what a public server allows: what is sent here is sent for real."""
    for name in ("upload_bytes", "uploads_receiving", "uploads_receiving_of_reader"):
        bound(monkeypatch, **{name: getattr(limits, name.upper()).public // 100})


def all_of(*sent: Coroutine[Any, Any, Answer]) -> list[Answer]:
    """One after another."""
    return [run_in_thread(each) for each in sent]


@pytest.mark.usefixtures("small")
def test_twelve_large_uploads_stay_within_what_one_reader_may_have(world: World) -> None:
    """Row 5: a stranger posts 12 × 150 MB, over two connections and over some without a cookie."""
    world.connected |= {"a": "0" * 32, "b": "0" * 32, "c": "", "d": "", "e": "", "f": ""}
    size = 150 * MB // 100
    answers = all_of(*(world.put(session, size) for session in "aabbaabbcdef"))
    assert [each.status for each in answers] == [204, *[413] * 7, 204, 204, 503, 503]
    of_reader, of_all = limits.UPLOADS_RECEIVING_OF_READER, limits.UPLOADS_RECEIVING
    said = [(each.text, each.read) for each in answers if each.status > 204]
    assert said == [(of_reader.refusal(), 0)] * 7 + [(of_all.refusal(), 0)] * 2
    assert world.held == 3 * size
    assert world.received.bytes == 3 * (size + AROUND)


@pytest.mark.usefixtures("small")
def test_many_small_files_count_in_full(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(monkeypatch, uploads_receiving_of_reader=3 * LEAST_COUNTED)
    answers = all_of(*(world.put("a") for _ in range(5)))
    assert [each.status for each in answers] == [204, 204, 204, 413, 413]


def test_what_may_not_come_in_is_refused_before_it_is_read(world: World) -> None:
    file, twice = str(UUID(int=0)), 2 * limits.UPLOAD_BYTES.most
    sized, large = {"content-length": "9"}, {"content-length": str(twice)}
    elsewhere = (f"a/{file[1:]}", f"a/{file}/", f"a/{file}\n", f"a/../{file}")
    unsized = [{}, {"transfer-encoding": "chunked"}]
    unsized += [{"content-length": length} for length in ("-1", "9" * 5_000)]
    for place, headers, status, sentence in [
        (f"b/{file}", sized, 410, upload_limits.DISCONNECTED),
        *((place, sized, 400, upload_limits.NOT_AN_UPLOAD) for place in elsewhere),
        *((f"a/{file}", each, 411, upload_limits.NO_LENGTH) for each in unsized),
        (f"a/{file}", large, 413, limits.UPLOAD_BYTES.refusal(twice)),
    ]:
        session, _, name = place.partition("/")
        answer = run_in_thread(world.put(session, 9, file=name, headers=headers))
        assert (answer.status, answer.text, answer.read) == (status, sentence, 0), place
    assert world.received.bytes == 0


@pytest.mark.usefixtures("small")
def test_a_reader_may_be_allowed_more(world: World) -> None:
    world.connected["b"] = ""
    world.received.allow("a", 100 * MB)
    size = limits.UPLOAD_BYTES.most + upload_limits.FORM_BYTES
    too_large = limits.UPLOAD_BYTES.refusal(size + AROUND)
    said = [limits.UPLOADS_RECEIVING_OF_READER.refusal(), too_large]
    assert [each.text for each in all_of(world.put("a", size), world.put("b", size))] == said


def test_what_goes_wrong_on_its_way_is_freed(world: World) -> None:
    def longer() -> Iterator[bytes]:
        yield from form(0)
        while True:
            yield BLOCK

    def twice() -> Iterator[bytes]:
        yield HEAD + b"\r\n" + HEAD.replace(b'"f"', b'"g"') + TAIL

    def broken() -> Iterator[bytes]:
        yield b"no form at all"

    def full() -> Iterator[bytes]:
        yield HEAD
        raise OSError(errno.ENOSPC, "No space left on device")

    said = []
    for body, status in ((longer(), 400), (twice(), 400), (broken(), 400), (full(), 503)):
        answer = run_in_thread(world.put("a", 1_000, body=body))
        assert (answer.status, world.received.bytes, world.held) == (status, 0, 0)
        assert answer.read < 2 * len(BLOCK)
        said.append(world.received.take_note("a"))
    assert said == [upload_limits.TOO_LONG, "", "", limits.DISK_LEFT.refusal(LEAST_COUNTED)]


@in_a_loop
async def test_an_upload_too_slow_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As is one whose reader leaves."""
    bound(monkeypatch, upload_seconds=0)
    never = asyncio.get_running_loop().create_future()
    slow = await world.put("a", at=lambda: never)
    assert (slow.status, slow.text) == (408, limits.UPLOAD_SECONDS.refusal())
    bound(monkeypatch, upload_seconds=600)

    async def left() -> Message:
        return {"type": "http.disconnect"}

    size = {"content-length": "900"}
    assert (await world.ask("PUT", f"a/{UUID(int=0)}", size, left)).status == 0
    assert (world.received.bytes, world.held) == (0, 0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("has_arrived", [True, False])
@in_a_loop
async def test_where_there_is_no_room_the_reader_with_the_most_loses_the_oldest(
    world: World, has_arrived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger cannot hold the room: not by uploads that wait, nor by some that never end."""
    bound(monkeypatch, uploads_receiving=limits.UPLOADS_RECEIVING_OF_READER.most)
    world.connected |= {"greedy": "", "small": ""}
    never, begun = asyncio.get_running_loop().create_future(), asyncio.Event()

    def stop_here() -> Any:
        begun.set()
        return None if has_arrived else never

    sent = asyncio.create_task(world.put("greedy", 2 * MB, at=stop_here))
    await (sent if has_arrived else begun.wait())
    assert (await world.put("small", MB)).status == 204
    greedy = await sent
    assert world.held == MB
    assert world.received.bytes == MB + AROUND
    refusal = limits.UPLOADS_RECEIVING.refusal()
    assert (greedy.status, greedy.text) == ((204, "") if has_arrived else (408, refusal))
    assert world.received.take_note("greedy") == refusal
    assert world.run == ["greedy"], "its page says so"


@pytest.mark.usefixtures("small")
def test_many_readers_from_one_network_share_what_one_would_have(world: World) -> None:
    """A stranger with twelve keys fills the room; who comes from elsewhere still gets in."""
    world.connected |= {f"key{number}": f"{number:032x}" for number in range(12)}
    world.connected |= {"a": "a" * 32, "b": "b" * 32}
    world.networks |= {"a": "198.51.100.7", "b": "198.51.100.8"}
    size = MB // 2 - AROUND
    taken = all_of(*(world.put(f"key{n}", size) for n in range(12)))
    assert {answer.status for answer in taken} == {204}
    answers = all_of(world.put("key0", size), world.put("a", 2 * MB - AROUND), world.put("b", size))
    assert [answer.status for answer in answers] == [503, 204, 204]
    kept = {session: len(files) for session, files in world.files.file_storage.items() if files}
    assert kept == {**{f"key{number}": 1 for number in range(5, 12)}, "a": 1, "b": 1}


@in_a_loop
async def test_the_same_file_is_received_once_at_a_time(world: World) -> None:
    file, end, begun = str(UUID(int=0)), asyncio.Event(), asyncio.Event()

    def wait() -> Any:
        begun.set()
        return end.wait()

    first = asyncio.create_task(world.put("a", 5, file=file, at=wait))
    await begun.wait()
    second = await world.put("a", 7, file=file)
    end.set()
    answers = [await first, second, await world.put("a", 9, file=file)]
    assert [each.status for each in answers] == [204, 409, 204]
    assert (world.held, world.received.bytes) == (9, LEAST_COUNTED)


def test_nobody_touches_the_uploads_of_another(world: World) -> None:
    """Who has learnt a session and a file of it still has not its reader's key."""
    world.connected |= {"a": "1" * 32, "b": "2" * 32, "c": ""}
    file = str(UUID(int=0))
    assert run_in_thread(world.put("a", 9, file=file)).status == 204
    for key in ("2" * 32, "", "junk"):
        other = {"cookie": f"{reader.COOKIE}={key}", "content-length": "900"}
        for method in ("PUT", "DELETE"):
            answer = run_in_thread(world.ask(method, f"a/{file}", other))
            assert (answer.status, answer.text) == (410, upload_limits.DISCONNECTED)
    answer = run_in_thread(world.ask("DELETE", "a/junk"))
    assert (answer.status, answer.text) == (400, upload_limits.NOT_AN_UPLOAD)
    assert (world.held, world.received.bytes, world.run) == (9, LEAST_COUNTED, [])


@in_a_loop
async def test_an_upload_that_is_taken_out_on_its_way_is_ended(world: World) -> None:
    """What is no longer counted is no longer received either."""
    file, begun = str(UUID(int=0)), asyncio.Event()

    def stop_here() -> Any:
        begun.set()
        return asyncio.get_running_loop().create_future()

    first = asyncio.create_task(world.put("a", MB, file=file, at=stop_here))
    await begun.wait()
    for _ in range(2):
        await world.ask("DELETE", f"a/{file}")
    await world.put("a", 5, file=file)
    answer, held = await first, world.held
    assert (answer.status, answer.text) == (408, TAKEN_OUT)
    assert (held, world.received.bytes) == (5, LEAST_COUNTED), "what came after it"


def test_of_a_form_with_many_parts_nothing_is_kept(world: World) -> None:
    def bomb() -> Iterator[bytes]:
        yield from (HEAD.replace(b'"f"', b'"%d"' % part) + b"\r\n" for part in range(3_000))
        yield TAIL

    answer = run_in_thread(world.put("a", 10 * MB, body=bomb()))
    assert (answer.status, world.held, world.received.bytes) == (400, 0, 0)
    long_name = HEAD.replace(b"config.json", b"x" * MB) + TAIL
    answer = run_in_thread(world.put("a", 2 * MB, body=iter([long_name])))
    assert (answer.status, world.held, world.received.bytes) == (400, 0, 0)


def test_the_left_and_the_removed_are_freed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.connected["b"] = ""
    files = [str(UUID(int=number)) for number in range(3)]
    all_of(*(world.put("a", 9, file=file) for file in files), world.put("b", 9))

    for place in (f"a/{files[0]}", f"a/{UUID(int=9)}", f"b/{files[1]}"):
        assert run_in_thread(world.ask("DELETE", place)).status == 204
    assert (world.held, world.received.bytes) == (27, 3 * LEAST_COUNTED)
    later: list[Callable[[], None]] = []

    async def connection(*_: Any) -> None:
        del world.connected["a"]

    async def connect() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda _, what: later.append(what))
        scope = {"type": "websocket", "path": "/_stcore/stream"}
        await UploadLimits(connection, world.received)(scope, AsyncMock(), AsyncMock())

    for comes_back in (True, False):
        run_in_thread(connect())
        if comes_back:
            world.connected["a"] = ""
        later.pop()()
        assert world.held == (27 if comes_back else 9)
    assert world.received.bytes == LEAST_COUNTED


@in_a_loop
async def test_what_comes_too_late_is_freed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "RECONNECT_SECONDS", 0)
    await world.put("a", 9, at=world.connected.clear)
    while world.received.bytes:
        await asyncio.sleep(0)
    assert world.held == 0

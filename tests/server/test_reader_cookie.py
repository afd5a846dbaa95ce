"""The key of a reader: given with the first page, read by no script; a session is its reader's."""

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from explorer.app.reader import BY_TLS, COOKIE, KEY, key_in, owner_of
from explorer.server.reader_cookie import OWNER, ReaderCookie, with_owner
from tests.calls import run_in_thread
from tests.served import Server
from tests.server.asking import Answer, Inside, ask, scope_of


def given(answer: Answer) -> tuple[str, set[str]]:
    """The key, and what is said of it; empty where none is given."""
    value, *about = answer.headers.get("set-cookie", "").split("; ")
    return value.removeprefix(f"{COOKIE}="), set(about)


def test_the_first_page_brings_a_key_that_no_script_and_no_other_site_reads() -> None:
    cookie = ReaderCookie(Inside())
    answers = [ask(cookie, scope_of("/attention")) for _ in range(2)]
    (first, about), (second, _) = map(given, answers)
    assert KEY.fullmatch(first)
    assert first != second
    assert about == {"Path=/", "Max-Age=31536000", "HttpOnly", "SameSite=Lax"}
    assert answers[0].headers.getlist("cache-control") == ["private, no-cache"]


def test_who_has_a_key_keeps_it() -> None:
    answer = ask(ReaderCookie(Inside()), scope_of(headers={"cookie": f"a=b; {COOKIE}={'0' * 32}"}))
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-cache"


def test_what_is_no_key_is_replaced() -> None:
    for value in ("", "0" * 31, "G" * 32, "0" * 33, "../../etc/passwd"):
        asked = scope_of(headers={"cookie": f"{COOKIE}={value}"})
        key, _ = given(ask(ReaderCookie(Inside()), asked))
        assert KEY.fullmatch(key), value


def test_what_came_by_tls_goes_only_by_tls() -> None:
    cookie = ReaderCookie(Inside())
    for scope in (scope_of(scheme="https"), scope_of(headers={"x-forwarded-proto": "https"})):
        (said,) = ask(cookie, scope).headers.getlist("set-cookie")
        name, _, value = said.partition("=")
        key, *about = value.split("; ")
        assert name == BY_TLS == "__Host-explorer_reader"
        assert KEY.fullmatch(key)
        assert {"Secure", "Path=/", "HttpOnly", "SameSite=Lax"} < set(about)
        assert not any(each.startswith("Domain") for each in about)


def test_by_tls_a_key_counts_that_no_other_server_can_have_set() -> None:
    """A server under a name beside this one may set any cookie but one that begins with __Host-."""
    cookie, tls = ReaderCookie(Inside()), {"x-forwarded-proto": "https"}
    planted, own = f"{COOKIE}={'a' * 32}", f"{BY_TLS}={'b' * 32}"
    for cookies, is_given in ((planted, True), (f"{planted}; {own}", False), (own, False)):
        answer = ask(cookie, scope_of(headers=tls | {"cookie": cookies}))
        assert ("set-cookie" in answer.headers) is is_given
    assert key_in({COOKIE: "a" * 32, BY_TLS: "b" * 32}) == "b" * 32
    assert key_in({COOKIE: "a" * 32, BY_TLS: "junk"}) == "a" * 32


def test_only_a_page_brings_one() -> None:
    assert given(ask(ReaderCookie(Inside("text/javascript")), scope_of("/static/a.js")))[0] == ""
    assert given(ask(ReaderCookie(Inside(status=404)), scope_of()))[0] == ""
    assert ask(ReaderCookie(Inside()), scope_of(kind="websocket")).status == 101
    unchanged = Inside("", status=304)
    assert KEY.fullmatch(given(ask(ReaderCookie(unchanged), scope_of()))[0])
    assert given(ask(ReaderCookie(unchanged), scope_of(headers={"accept": "*/*"})))[0] == ""


HERS, HIS = "a" * 32, "b" * 32


def test_a_websocket_says_whose_it_is_whatever_it_said_itself() -> None:
    pretended = {"X-Explorer-Owner": owner_of(HERS)}
    for cookie, owners in [({"cookie": f"{COOKIE}={HIS}"}, [owner_of(HIS)]), ({}, [])]:
        scope = with_owner(scope_of("/_stcore/stream", pretended | cookie, kind="websocket"))
        said = [value.decode() for name, value in scope["headers"] if name.decode() == OWNER]
        assert said == owners
        assert owner_of(HERS) not in str(scope["headers"])


async def session_of(socket: ClientConnection) -> str:
    """The session that a connection was given, once its page has run."""
    asked = BackMsg()
    asked.rerun_script.query_string = ""
    await socket.send(asked.SerializeToString())
    name = ""
    while True:
        data = await socket.recv()
        assert isinstance(data, bytes)
        message = ForwardMsg.FromString(data)
        if message.WhichOneof("type") == "new_session":
            name = message.new_session.initialize.session_id
        elif message.WhichOneof("type") == "script_finished":
            return name


async def come(server: Server, key: str, session: str = "none") -> ClientConnection:
    """Connect as a browser does that was connected to this session."""
    protocols = [Subprotocol(each) for each in ("streamlit", "no-token", session)]
    return await connect(
        f"{server.url.replace('http', 'ws', 1)}/_stcore/stream",
        subprotocols=protocols,
        additional_headers={"Cookie": f"{COOKIE}={key}"},
    )


async def steal(server: Server) -> None:
    """A stranger names her session, while she is there and after she left."""
    hers = await come(server, HERS)
    name = await session_of(hers)
    stranger = await come(server, HIS, name)
    assert await session_of(stranger) != name
    assert await session_of(hers) == name
    await hers.close()
    again = await come(server, HIS, name)
    assert await session_of(again) != name
    back = await come(server, HERS, name)
    assert await session_of(back) == name
    for socket in (stranger, again, back):
        await socket.close()


def test_who_knows_the_name_of_a_session_is_not_given_it(app: Server) -> None:
    run_in_thread(steal(app))

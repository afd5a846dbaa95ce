"""A session goes on for its reader, and for no stranger who learned its name."""

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from explorer.app.reader import COOKIE, owner_of
from explorer.server.reader_cookie import OWNER, with_owner
from tests.calls import run_in_thread
from tests.served import Server
from tests.server.asking import scope_of

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

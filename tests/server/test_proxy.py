"""nginx with the settings of `deploy` before played replicas: who is asked, and who next."""

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from explorer.app.reader import BY_TLS, COOKIE, network_of
from tests import proxy
from tests.proxy import Proxy
from tests.served import ROOT, free_port, wait_until

TEXT = "what+a+reader+typed"
KEYS = tuple(f"{number:032x}" for number in range(48))


class Played(ThreadingHTTPServer):
    """A replica that says its name, or nothing but this status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", free_port()), Answer)
        self.name = str(self.server_port)
        self.status = 200
        self.said = ""  # by the proxy, of the reader: the address, and by what the reader came
        self.begun = 0  # requests whose first lines have arrived
        self.ended = 0  # of the answers without an end
        self.taken = 0  # megabytes of an answer of 60
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self) -> None:
        """Nobody listens there any more."""
        self.shutdown()
        self.server_close()


class Answer(BaseHTTPRequestHandler):
    server: Played

    def do_GET(self) -> None:
        self.server.begun += 1
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        told = (self.headers.get(f"X-Forwarded-{name}", "") for name in ("For", "Proto"))
        self.server.said = " ".join(told)
        if self.headers.get("Upgrade"):
            self.send_without_end()
        elif self.path == "/media/large":
            self.send_slowly()
        else:
            body = self.server.name.encode()
            self.send_response(self.server.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_PUT = do_GET

    def send_slowly(self) -> None:
        """Send until nobody takes more for a second."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n")
        self.request.settimeout(1)
        with suppress(OSError):
            for self.server.taken in range(60):
                self.wfile.write(bytes(1_000_000))
        self.server.ended += 1

    def send_without_end(self) -> None:
        """Over a WebSocket, until it is closed."""
        self.wfile.write(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n")
        with suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 20))
        self.server.ended += 1

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def played() -> Iterator[list[Played]]:
    both = [Played(), Played()]
    yield both
    for each in both:
        each.end()


@pytest.fixture
def front(tmp_path: Path, played: list[Played]) -> Iterator[Proxy]:
    with in_front(tmp_path, played) as front:
        yield front


@contextmanager
def in_front(folder: Path, played: list[Played], more: str = "") -> Iterator[Proxy]:
    """nginx before these, with `more` in listen.conf."""
    try:
        proxy.ensure()
    except proxy.NoNginx as error:
        pytest.skip(str(error))
    ports = [each.server_port for each in played]
    with proxy.proxy(folder / "proxy", free_port(), ports, more) as front:
        yield front


def ask(front: Proxy, at: str = "/", key: str = "", put: bytes = b"", cookie: str = "") -> str:
    """What the proxy answers to a reader with this key."""
    request = urllib.request.Request(front.url + at, put or None, method="PUT" if put else "GET")
    if key or cookie:
        request.add_header("Cookie", cookie or f"other=1; {COOKIE}={key}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def places(front: Proxy) -> dict[str, str]:
    """At which replica each reader is."""
    return {key: ask(front, key=key) for key in KEYS}


def test_a_reader_stays_at_one_replica_of_both_used(front: Proxy, played: list[Played]) -> None:
    at = places(front)
    assert set(at.values()) == {each.name for each in played}
    assert places(front) == at
    for key, other in zip(KEYS, reversed(KEYS), strict=True):
        both = f"{COOKIE}={other}; {BY_TLS}={key}"
        assert ask(front, cookie=both) == at[key], "the key that came by TLS counts"
    assert len({ask(front) for _ in range(5)}) == 1, "without a cookie, by the address"


def test_readers_leave_a_replica_that_ends_or_is_full(front: Proxy, played: list[Played]) -> None:
    first, second = played
    at = places(front)
    first.status = 503
    assert set(places(front).values()) == {second.name}
    second.status = 503
    assert ask(front, key=KEYS[0]).startswith("503 "), "its own sentence, where all are full"
    first.status = second.status = 200
    assert places(front) == at, "nobody is forgotten"
    first.end()
    assert set(places(front).values()) == {second.name}
    second.end()
    assert ask(front).startswith("503 The app is being started; open it again in a minute.")


def test_a_file_is_looked_for_where_its_session_is(front: Proxy, played: list[Played]) -> None:
    first, second = played
    at_first = next(key for key, name in places(front).items() if name == first.name)
    first.status = 404  # it was away meanwhile, and knows the session no more
    assert ask(front, "/media/1.csv", at_first) == second.name
    assert ask(front, "/elsewhere", at_first) == f"404 {first.name}"


def test_an_upload_is_passed_on_as_it_arrives(front: Proxy, played: list[Played]) -> None:
    first, _ = played
    at_first = next(key for key, name in places(front).items() if name == first.name)
    address = "/_stcore/upload_file/session/1"
    assert ask(front, address, at_first, put=b"x" * 100_000) == first.name
    before = first.begun
    head = f"PUT {address} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    with line_to(front, f"{head}Cookie: {COOKIE}={at_first}\r\n\r\nx".encode()):
        wait_until(lambda: first.begun > before, "the replica has heard of it")


@contextmanager
def line_to(front: Proxy, sent: bytes) -> Iterator[socket.socket]:
    port = int(front.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(sent)
        yield line


def reply(front: Proxy, sent: bytes) -> bytes:
    """The first that comes back; empty where the proxy closes the connection without a word."""
    with line_to(front, sent) as line:
        return line.recv(4096)


FIRST_LINES = b" / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
UPGRADE = b"Upgrade: websocket\r\n\r\n"


def test_a_request_in_pieces_reaches_no_replica(front: Proxy, played: list[Played]) -> None:
    """Each line of a head and each chunk of a body costs the replica as much as a message."""
    head = b"GET" + FIRST_LINES
    assert reply(front, head + b"Cookie: " + b"a" * 36_000 + b"\r\n\r\n")[:12] == b"HTTP/1.1 200"
    begun = [each.begun for each in played]
    for status, sent in [
        (400, head + b"a:b\r\n" * 18_000),
        (400, head + b"a: " + b"b" * 50_000),
        (411, b"PUT" + FIRST_LINES + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"),
        (413, b"PUT" + FIRST_LINES + b"Content-Length: 2\r\n\r\n"),
    ]:
        assert reply(front, sent).startswith(b"HTTP/1.1 %d" % status), sent[:100]
    assert [each.begun for each in played] == begun


UPLOAD = b"PUT /_stcore/upload_file/a/1" + FIRST_LINES[2:] + b"Content-Length: 9\r\n"


WithFew = Callable[[dict[str, str]], AbstractContextManager[Proxy]]


@pytest.fixture
def with_few(tmp_path: Path, played: list[Played], monkeypatch: pytest.MonkeyPatch) -> WithFew:
    """Other numbers in the place of these; what a reader says of the own address is believed."""

    def front(few: dict[str, str]) -> AbstractContextManager[Proxy]:
        text = proxy.CONFIG.read_text("utf-8")
        for pattern, other in few.items():
            text, found = re.subn(pattern, other, text)
            assert found == (4 if "timeout" in pattern else 2 if "300" in pattern else 1)
        (tmp_path / "nginx.conf").write_text(text)
        monkeypatch.setattr(proxy, "CONFIG", tmp_path / "nginx.conf")
        more = "set_real_ip_from 127.0.0.0/8;\nreal_ip_header X-Forwarded-For;\n"
        return in_front(tmp_path, played, more)

    return front


def test_who_is_silent_or_reads_nothing_is_ended(with_few: WithFew, played: list[Played]) -> None:
    with with_few({r"(?<=_timeout )(10|30)s(?=;)": "1s"}) as front:
        body = b"PUT" + FIRST_LINES + b"Content-Length: 1\r\n\r\n"
        with ThreadPoolExecutor() as readers:
            sent = (b"", b"GET" + FIRST_LINES, body, UPLOAD + b"\r\n")
            assert {*readers.map(partial(reply, front), sent)} == {b""}
        with line_to(front, b"GET /_stcore/stream" + FIRST_LINES[2:] + UPGRADE):
            wait_until(lambda: any(each.ended for each in played), "its end: nobody reads it")


def test_a_network_has_some_connections_and_fewer_uploads(
    with_few: WithFew, played: list[Played]
) -> None:
    """The proxy counts as the app does: here two, one of which uploads."""
    others = {"192.0.2.1": "192.0.2.2", "2001:db8:1:2::1": "2001:db8:1:2:3:4:5:6"}
    others |= {"2001:db8::1": "2001:db8::3:4:5:6", "2001:db8:0:3::1": "2001:db8:0:4::1"}
    stream = b"GET /_stcore/stream" + FIRST_LINES[2:]
    with with_few({r"(?<=of_network )300": "2", r"(?<=of_network )48": "1"}) as front:
        for first, other in others.items():
            mine, theirs = (f"X-Forwarded-For: {each}\r\n".encode() for each in (first, other))
            refused = b"429" if network_of(first) == network_of(other) else b"200"
            for each in played:
                each.begun = 0
            with line_to(front, UPLOAD + mine + b"\r\n"):
                wait_until(lambda: sum(each.begun for each in played) == 1, "the upload")
                assert reply(front, UPLOAD + theirs + b"\r\n" + bytes(9))[9:12] == refused
                with line_to(front, stream + mine + UPGRADE) as line:
                    assert line.recv(12)[9:] == b"101"
                    assert reply(front, b"GET" + FIRST_LINES + theirs + b"\r\n")[9:12] == refused


def test_who_reads_slowly_holds_few_bytes(front: Proxy, played: list[Played]) -> None:
    """Twelve of them held 1.9 GB of answers in files of the proxy."""
    with line_to(front, b"GET /media/large" + FIRST_LINES[2:] + b"\r\n"):
        wait_until(lambda: any(each.ended for each in played), "a second without more")
    assert max(each.taken for each in played) < 30


def test_the_notes_of_the_proxy_hold_no_text_no_session(front: Proxy, played: list[Played]) -> None:
    ask(front, f"/attention?text={TEXT}", KEYS[0])
    for each in played:
        each.end()
    ask(front, f"/attention?text={TEXT}", KEYS[0])
    wait_until(lambda: front.log.count("\n") >= 2, "two lines")
    lines = [json.loads(line) for line in front.log.splitlines()]
    assert {line["event"] for line in lines} == {"request"}
    assert [line["status"] for line in lines] == ["200", "503"]
    assert not [private for private in (TEXT, "attention", KEYS[0]) if private in front.log]


@pytest.mark.parametrize(
    ("other", "said"), [("127.0.0.0/8", "203.0.113.7 https"), ("192.0.2.0/24", "127.0.0.1 http")]
)
def test_a_named_proxy_counts(other: str, said: str, tmp_path: Path, played: list[Played]) -> None:
    """By the lines that docs/public_server.md has for it."""
    page = (ROOT / "docs" / "public_server.md").read_text("utf-8")
    (lines,) = re.findall(r"^set_real_ip_from .+?(?=^```)", page, re.M | re.S)
    lines = lines.replace("203.0.113.0/24", other)
    lines = lines if "https" in said else lines.replace("set $by https;", "")
    with in_front(tmp_path, played, lines) as front:
        claimed = {"X-Forwarded-For": "203.0.113.7"}
        request = urllib.request.Request(f"{front.url}/", headers=claimed)
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
    assert said in {each.said for each in played}


def test_the_page_on_security_has_these_limits() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    for setting, words in {
        "client_header_timeout 10s;": "10 s for the head",
        "client_body_timeout 10s;": "10 s without a byte of a body",
        "send_timeout 30s;": "30 s without taking any of an answer",
        "limit_conn of_network 300;": "| nginx | 300, ",
        "limit_conn uploads_of_network 48;": "of which 48 upload |",
        "large_client_header_buffers 2 40k;": "80 kB, of which one line 40 kB",
        "client_max_body_size 1;": "| Bodies other than uploads | nginx | none |",
        "proxy_max_temp_file_size 0;": "no file",
    }.items():
        assert setting in proxy.CONFIG.read_text("utf-8")
        assert words in page

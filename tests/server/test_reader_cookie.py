"""The key of a reader: given with the first page, kept by the browser, read by no script."""

import pytest

from explorer.app.reader import BY_TLS, COOKIE, KEY, key_in
from explorer.server.reader_cookie import ReaderCookie
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


@pytest.mark.parametrize("value", ["", "0" * 31, "G" * 32, "0" * 33, "../../etc/passwd"])
def test_what_is_no_key_is_replaced(value: str) -> None:
    asked = scope_of(headers={"cookie": f"{COOKIE}={value}"})
    key, _ = given(ask(ReaderCookie(Inside()), asked))
    assert KEY.fullmatch(key)


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

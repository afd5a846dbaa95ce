"""What is kept for a reader: a session, bounded, ordered, known by its list; and their lessons."""

import json
from dataclasses import replace
from operator import attrgetter

import pytest

from explorer.app import reader_store
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.reader_store import KeptSession, KeptSessions, OwnLessons, read_list
from explorer.charts.figure_data import OfflinePicture
from explorer.export.kept_view import LONGEST_VIEW_NOTE, LONGEST_VIEW_TITLE, KeptView
from explorer.lessons.lesson_file import lesson_from
from explorer.system.limits import KEPT_VIEWS

MINE = "reader"


def view(title: str, size: int = 100) -> KeptView:
    return KeptView(title, f"/attention?text={title}", pictures=[OfflinePicture("", bytes(size))])


def mine(kept: KeptSessions) -> KeptSession:
    return kept.of(MINE) or KeptSession()


def titles(kept: KeptSession | None) -> list[str]:
    assert kept is not None
    return [each.title for each in kept.views]


def test_views_are_kept_in_the_order_that_the_reader_wants() -> None:
    kept = KeptSessions()
    for title in ("a", "b", "c"):
        assert kept.add(MINE, view(title)) == ""
    first, second, third = mine(kept).views
    kept.move(MINE, third.id, -5)
    kept.rename(MINE, first.id, title="First")
    kept.rename(MINE, first.id, note="Say this.")
    kept.remove(MINE, second.id)
    kept.remove(MINE, view("a stranger's").id)
    kept.move(MINE, second.id, 1)
    kept.rename("another reader", first.id, title="Mine")
    assert titles(kept.of(MINE)) == ["c", "First"]
    assert [each.note for each in mine(kept).views] == ["", "Say this."]
    assert kept.of("another reader") is None


def test_a_list_that_the_browser_remembers_comes_back_without_its_pictures() -> None:
    kept, again = KeptSessions(), KeptSessions()
    kept.call(MINE, "My talk")
    kept.add(MINE, view("a"))
    again.take_back(MINE, json.loads(json.dumps(mine(kept).listed())))
    again.take_back(MINE, {"views": []})
    found = mine(again)
    assert titles(found) == ["a"]
    assert (found.title, found.views[0].is_drawn) == ("My talk", False)
    again.add(MINE, view("a"))
    assert [each.is_drawn for each in mine(again).views] == [True]


def test_a_view_that_is_drawn_again_keeps_its_words_and_its_id() -> None:
    """Of two views of one address, the first without a picture is drawn."""
    kept, address = KeptSessions(), view("a").address
    kept.take_back(MINE, {"views": [[address, "Mine", "Say this."], [address, "Second", ""]]})
    before = mine(kept).views
    assert kept.add(MINE, view("a")) == ""
    after = mine(kept).views
    assert [each.is_drawn for each in after] == [True, False]
    of = attrgetter("id", "title", "note")
    assert [*map(of, after)] == [*map(of, before)]


def test_the_longest_text_fits_into_an_address_that_is_kept() -> None:
    """Letters that take nine characters of it each; what does not fit is refused at once."""
    kept, longest = KeptSessions(), "/attention?text=" + "%E7%8C%AB" * TEXT_LIMIT
    assert kept.add(MINE, KeptView("a", longest)) == ""
    assert titles(read_list(mine(kept).listed())) == ["a"]
    assert "shorten its text" in kept.add(MINE, KeptView("b", longest * 2))


STRANGE: list[object] = [
    *(None, 7, "text", [], {}, {"views": "text"}, {"views": 3}),
    {"views": [None, 1, "/", [], ["/", "a"], ["/", "a", 3], ["/", "a", "b", "c"]]},
    {"views": [["https://elsewhere.example/", "a", ""], ["//elsewhere.example", "a", ""]]},
    {"views": [["javascript:alert(1)", "a", ""], ["/\\elsewhere", "a", ""], ["/\n", "a", ""]]},
    {"views": [["/" + "a" * 30_000, "a", ""]]},
]


def test_what_is_no_view_is_left_out() -> None:
    for remembered in STRANGE:
        found = read_list(remembered)
        assert found is None or found.views == (), remembered


def test_what_a_browser_sends_is_bounded() -> None:
    many = [["/attention", "a\nb\u202e" * 100, "n" * 10_000]] * 1_000
    found = read_list({"title": {"no": "text"}, "views": many})
    assert found is not None
    assert (found.title, len(found.views)) == (reader_store.NEW, KEPT_VIEWS.most)
    assert len(found.views[0].title) <= LONGEST_VIEW_TITLE
    assert found.views[0].title.isprintable()
    assert len(found.views[0].note) == LONGEST_VIEW_NOTE


def test_the_session_used_longest_ago_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_KEPT_BYTES", "25000")
    kept = KeptSessions()
    for owner in ("a", "b"):
        kept.add(owner, view(owner, 9_000))
    kept.call("a", "Used again")
    kept.add("c", view("c", 9_000))
    assert (kept.of("b"), titles(kept.of("a")), titles(kept.of("c"))) == (None, ["a"], ["c"])


def test_sessions_that_hold_nothing_are_not_without_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_KEPT_BYTES", "50000")
    kept, most = KeptSessions(), 50_000 // reader_store.LEAST_BYTES
    for at in range(most + 2):
        kept.call(str(at), "Empty")
    assert [kept.of(str(at)) is None for at in (0, 1, 2)] == [True, True, False]


STEP = '[[steps]]\ntitle = "a"\nopen = "/masks"\ntext = "b"\n'
LESSON = lesson_from(f'title = "a"\nabout = "b"\nminutes = 1\n{STEP}'.encode(), "a.toml")


def test_a_reader_finds_their_own_lessons_and_the_first_leave_where_there_are_many() -> None:
    kept = OwnLessons()
    most = reader_store.MOST_OWN_LESSONS
    for at in range(most + 2):
        kept.add("me", replace(LESSON, name=f"lesson-{at}"), 1)
    kept.add("me", replace(LESSON, name="lesson-2"), 1)
    left = [*range(3, most + 2), 2]
    assert [*kept.of("me")] == [f"lesson-{at}" for at in left]
    assert kept.of("you") == {}


def test_no_network_pushes_out_what_another_has_uploaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_OWN_LESSONS_BYTES", "100")
    kept = OwnLessons()
    for at in range(3):  # another network does not push out what others have
        with monkeypatch.context() as patch:
            patch.setattr(reader_store, "network", lambda at=at: "theirs" if at else "mine")
            kept.add(f"stranger-{at}", LESSON, 40)
    assert [at for at in range(3) if kept.of(f"stranger-{at}")] == [0, 2]
    kept.add("stranger-3", LESSON, 200)
    assert [at for at in range(4) if kept.of(f"stranger-{at}")] == [3], "the last stays"

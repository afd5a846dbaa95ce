"""Turns: few at once, fair, given back and handed on; a bar is shown where work takes long."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Event
from unittest.mock import Mock

import pytest

from explorer.app import progress, streamlit_patches, throttle
from explorer.app.progress import with_bar
from explorer.app.throttle import PageRun, PlaceInLine, Turns, at_work, turn
from explorer.system import cooperative
from explorer.system.cooperative import CancellableCondition


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    thread_time = monotonic


class RecordedTurns(Turns):
    """Turns that note who asks for one, and say so at once."""

    def __init__(self, most: int = 1) -> None:
        super().__init__(lambda: most)
        self.places: list[PlaceInLine] = []
        """Of those who have a turn or wait for one, but for those who gave theirs back here."""
        self.whose: list[tuple[bool, str, str]] = []
        self.heard: Callable[[], object] = lambda: None

    def ask(self, *, begins: bool, network: str = "", owner: str = "") -> PlaceInLine:
        place = super().ask(begins=begins, network=network, owner=owner)
        self.places.append(place)
        self.whose.append((begins, network, owner))
        self.heard()
        return place

    def end_a_piece(self) -> None:
        """Whoever has had a turn for longest gives it back."""
        place = next(place for place in self.places if place.is_set())
        self.places.remove(place)
        self.give_back(place)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(throttle, "time", made)
    return made


@pytest.fixture
def turns(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> RecordedTurns:
    """One turn at a time, handed on at every step."""
    made = RecordedTurns()
    monkeypatch.setattr(throttle, "TURNS", made)
    monkeypatch.setattr(throttle, "QUANTUM", 0.0)
    monkeypatch.setattr(throttle, "MOMENT", 0.0)
    return made


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a page says at the end of its run."""
    sentences: list[str] = []
    monkeypatch.setattr(throttle, "say", sentences.append)
    return sentences


def test_no_other_turn_within_a_turn(turns: RecordedTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fragment within the run of its page has that run's turn; drawn alone, one of its own."""
    monkeypatch.setattr(throttle.reader, "network", lambda: "there")
    monkeypatch.setattr(throttle.reader, "owner", lambda: "A")
    draw = turn()(lambda: None)
    with turn():
        draw()
    assert turns.whose == [(True, "there", "A")], "the page and its fragment are one turn"
    draw()
    assert turns.whose == [(True, "there", "A")] * 2


def test_a_short_answer_waits_for_at_most_two_pieces_of_the_work_of_others(clock: Clock) -> None:
    """However many they are: those who begin and those who go on are served alternately."""
    turns = RecordedTurns(2)

    def end_a_piece() -> None:
        turns.end_a_piece()
        turns.ask(begins=False)

    for _ in range(20):
        turns.ask(begins=True)
    for _ in range(60):
        end_a_piece()
    assert sum(place.is_set() for place in turns.places) == 2
    for _ in range(5):
        light, pieces = turns.ask(begins=True), 0
        while not light.is_set():
            end_a_piece()
            pieces += 1
        assert pieces <= 2
        turns.places.remove(light)
        turns.give_back(light)


def served(turns: RecordedTurns, waiting_runs: Sequence[tuple[str, PlaceInLine]]) -> Iterator[str]:
    """The names of those who wait, in the order in which their turns come."""
    left = dict(waiting_runs)
    while left:
        turns.end_a_piece()
        (name,) = (name for name, place in left.items() if place.is_set())
        del left[name]
        yield name


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("by", ["owner", "network"])
def test_readers_and_networks_take_turns_not_tabs(clock: Clock, by: str, begins: bool) -> None:
    """A reader without a cookie is a new one each time, and comes from the same network."""
    turns = RecordedTurns()
    turns.ask(begins=True)
    names = [*(f"A{tab}" for tab in range(100)), "B0", "B1", "C0", "C1"]
    asked = [(n, turns.ask(begins=begins, **{"owner": n, by: n[0]})) for n in names]
    order = list(served(turns, asked))
    assert order[:8] == ["A0", "B0", "C0", "A1", "B1", "C1", "A2", "A3"]
    assert order[8:] == names[4:100], "and all have theirs"


def test_who_comes_again_and_again_is_served_after_those_who_wait(clock: Clock) -> None:
    """However few runs a reader has at once, and however many others come later."""
    turns = RecordedTurns()
    turns.ask(begins=True, owner="A")
    asked = [(each, turns.ask(begins=True, owner=each)) for each in "BC"]
    turns.end_a_piece()
    asked += [("A again", turns.ask(begins=True, owner="A"))]
    asked += [("B again", turns.ask(begins=True, owner="B"))]
    asked += [("D", turns.ask(begins=True, owner="D"))]
    assert asked.pop(0)[1].is_set()
    assert list(served(turns, asked)) == ["C", "A again", "B again", "D"]


def test_a_run_that_is_given_up_leaves_nothing_in_the_line(clock: Clock) -> None:
    turns = Turns(lambda: 1)
    turn_here = turns.ask(begins=True)
    for begins in (True, False):
        for place in [turns.ask(begins=begins, network="n", owner=o) for o in "AAB"]:
            turns.give_back(place)
    assert not turns.step(turn_here)


def test_those_who_go_on_are_not_forgotten_where_others_begin_all_the_time(clock: Clock) -> None:
    turns = RecordedTurns()
    turns.ask(begins=True)
    heavy = turns.ask(begins=False)
    for _ in range(2):
        turns.ask(begins=True)
        turns.ask(begins=True)
        turns.end_a_piece()
    assert heavy.is_set()


def test_long_work_hands_its_turn_on_between_two_pieces(turns: RecordedTurns) -> None:
    """The light reader is answered after one step of the heavy one, which then goes on."""
    said: list[str] = []
    begun = Event()

    def heavy() -> None:
        with turn():
            for piece in range(3):
                said.append(f"piece {piece}")
                begun.set()
                if piece == 0:
                    light_waits.wait()
                cooperative.step()

    def light() -> None:
        with turn():
            said.append("light")

    light_waits = Event()
    with ThreadPoolExecutor() as threads:
        one = threads.submit(heavy)
        begun.wait()
        turns.heard = light_waits.set
        two = threads.submit(light)
        one.result()
        two.result()
    assert said == ["piece 0", "light", "piece 1", "piece 2"]


def test_a_short_piece_is_not_cut_up(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(lambda: 1)
    monkeypatch.setattr(throttle, "TURNS", turns)
    run = PageRun()
    run.begin()
    other = turns.ask(begins=True)
    clock.now += throttle.QUANTUM / 2
    run.step()
    assert not other.is_set()
    turns.give_back(other)


def test_work_without_a_step_does_not_count_for_ever(turns: RecordedTurns, clock: Clock) -> None:
    assert turns.ask(begins=True).is_set()
    other = turns.ask(begins=True)
    turns.look()
    assert not other.is_set()
    clock.now += throttle.LONGEST_STEP_SECONDS
    turns.look()
    assert other.is_set()
    third = turns.ask(begins=True)
    assert not third.is_set(), "one after another, also beside it"
    turns.give_back(other)
    assert third.is_set()


def test_who_waits_for_another_needs_no_turn_meanwhile(turns: RecordedTurns) -> None:
    """Otherwise all would wait: one for the turn, the other for what that one makes."""
    lock, made, waits = CancellableCondition(), list[int](), Event()

    def asks() -> None:
        with turn(), lock:
            while not made:
                waits.set()
                lock.wait()

    def makes() -> None:
        with turn(), lock:
            made.append(1)
            lock.notify_all()

    with ThreadPoolExecutor() as threads:
        one = threads.submit(asks)
        waits.wait()
        threads.submit(makes).result()
        one.result()
    assert turns.ask(begins=True).is_set(), "every turn was given back"


def test_while_another_process_works_for_a_run_others_have_its_turn(turns: RecordedTurns) -> None:
    with turn():
        with cooperative.offload() as look_up:
            place = turns.ask(begins=True)
            assert place.is_set()
            look_up()
            turns.give_back(place)
        assert not turns.ask(begins=True).is_set(), "it goes on"


def test_a_run_that_computes_for_too_long_ends_in_a_sentence(
    turns: RecordedTurns, clock: Clock, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_WORK_SECONDS", "7")
    done = 0
    with turn():
        for _ in range(20):
            cooperative.step()
            clock.now += 1
            done += 1
    assert done == 8
    assert "This took more than 7 seconds" in said[0]


class Left(BaseException):
    """What ends a run, as Streamlit's own do."""


@pytest.mark.parametrize("waits_for", ["", "a turn", "another's result", "another process"])
def test_whoever_runs_the_server_sees_who_is_at_work_and_stops_it(
    waits_for: str, turns: RecordedTurns, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it waits."""
    monkeypatch.setattr(throttle.reader, "owner", lambda: "A")
    monkeypatch.setattr(throttle.st, "stop", Mock(side_effect=Left))
    monkeypatch.setattr(cooperative, "CHECK_SECONDS", 0.0)
    changed = CancellableCondition()

    def work() -> None:
        with turn():
            assert [each.owner for each in at_work()] == [], "not the one that asks"
            while not waits_for:
                cooperative.step()
            if waits_for == "another's result":
                with changed:
                    while True:
                        changed.wait()
            with cooperative.offload() as look_up:
                while True:
                    look_up()

    taken = turns.ask(begins=True) if waits_for == "a turn" else None
    with ThreadPoolExecutor() as threads:
        one = threads.submit(work)
        while not (seen := at_work()) or seen[0].waits is not bool(waits_for):
            assert not one.done()
        assert (seen[0].owner, seen[0].page) == ("A", "")
        seen[0].stop()
        with pytest.raises(Left) if taken else nullcontext():
            one.result()
    assert said == [throttle.STOPPED]
    assert at_work() == []
    if taken is not None:
        turns.give_back(taken)


def test_a_run_ends_with_its_reader(turns: RecordedTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def work() -> None:
        for piece in cooperative.interruptible(range(5)):
            done.append(piece)
            if piece == 2:
                monkeypatch.setattr(streamlit_patches, "end_if_unwanted", Mock(side_effect=Left))

    with pytest.raises(Left), turn():
        work()
    assert done == [0, 1, 2]
    assert turns.ask(begins=True).is_set(), "its turn is given back"
    cooperative.step()  # in a thread that nobody reads


def test_long_work_says_how_far_it_is_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, long = set[str](), ["Reading: 10%, about 9 s left", "Reading: 40%, about 3 s left"]
    monkeypatch.setattr(progress, "state_of", lambda _kind: stopped)
    monkeypatch.setattr(progress, "end_page", Mock(side_effect=Left))
    for seconds, said in ((0.001, list[str]()), (1.0, long)):
        place, times = Mock(), iter([seconds * look for look in range(100)])
        monkeypatch.setattr(progress, "st", Mock(empty=Mock(return_value=place)))
        monkeypatch.setattr(progress.time, "monotonic", times.__next__)
        assert with_bar([1, 3, 6], 10, "Reading", lambda step: step) == [1, 3, 6]
        assert [call.args[1] for call in place.progress.call_args_list] == said
    place.button.call_args.kwargs["on_click"]("Reading")
    with pytest.raises(Left):
        with_bar([], 1, "Reading")

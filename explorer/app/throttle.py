"""Only a few page runs compute at a time, since more would only compete for the interpreter.

Long work calls `cooperative.step` between its pieces. A run that has computed for a moment then
hands its turn to the next one in line. New runs and runs that go on are served alternately, so a
short answer waits for at most one piece of other work, however many readers there are. In both
lines, networks take turns, then the readers of a network, then the runs of a reader, so nobody gets
more by opening more tabs or by posing as more readers.

A fragment that is drawn alone is outside its page's run, so it takes its own turn (`@turn()` under
`@st.fragment`). Only the curves of a training run take none: they read a few lines of a file again
and again, and would stop while others compute. The forward pass beside them takes one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Lock

import streamlit as st
from prometheus_client import Counter, Histogram

from explorer.app import reader, streamlit_patches
from explorer.app.messages import say
from explorer.app.session import session
from explorer.system import cooperative, limits
from explorer.text.checked_text import ForwardPassError

QUANTUM = 0.05
"""Seconds of computing before a turn is handed on; short answers finish within one turn."""
MOMENT = 0.005
"""Seconds of computing between two checks whether to go on."""
STOPPED = "The operator of this server stopped this. Try again later."
LONGEST_STEP_SECONDS = 1.0
"""Seconds after which work without a step no longer counts, so that others may begin."""


class RunEnded(BaseException):
    """Says why a run ends; like Streamlit's own, no `except Exception` catches it."""


class PlaceInLine(Event):
    """A run's place in a line; the event is set when its turn comes."""

    def __init__(self, network: str, owner: str) -> None:
        super().__init__()
        self.network = network
        self.owner = owner


class Line(list[PlaceInLine]):
    """Waiting places; networks, and readers within a network, are served in turn.

    So a new run waits at most a turn of each other network, and of each other reader in its own.
    """

    def take(self) -> PlaceInLine:
        """Take the next place; its network goes to the end, and there its reader to the end."""
        taken = self.pop(0)
        network, source = taken.network, (taken.network, taken.owner)
        self.sort(
            key=lambda place: (place.network == network, (place.network, place.owner) == source)
        )
        return taken


class Turns:
    """The runs that compute now, and those that wait."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._lock = Lock()
        self._at_work: dict[PlaceInLine, float] = {}
        """Places that have a turn, and when their last piece of work began."""
        self._beginning = Line()
        self._going_on = Line()
        self._last_began = False

    def ask(self, *, begins: bool, network: str = "", owner: str = "") -> PlaceInLine:
        """A place in line for a run of this reader in this network."""
        place = PlaceInLine(network, owner)
        with self._lock:
            (self._beginning if begins else self._going_on).append(place)
            self._hand_out()
        return place

    def look(self) -> None:
        """Let others begin beside work that has taken no step for long."""
        with self._lock:
            self._hand_out()

    def step(self, place: PlaceInLine) -> bool:
        """Note that this run has taken a step; whether another run waits."""
        if place in self._at_work:
            self._at_work[place] = time.monotonic()
        return bool(self._beginning or self._going_on)

    def give_back(self, place: PlaceInLine) -> None:
        """Give up a turn or a place in line."""
        with self._lock:
            for line in (self._beginning, self._going_on):
                if place in line:
                    line.remove(place)
            self._at_work.pop(place, None)
            self._hand_out()

    def _hand_out(self) -> None:
        now = time.monotonic()
        while self._beginning or self._going_on:
            late = now - LONGEST_STEP_SECONDS
            if sum(since > late for since in self._at_work.values()) >= self._most():
                return
            begins = bool(self._beginning) and not (self._last_began and self._going_on)
            self._last_began = begins
            place = (self._beginning if begins else self._going_on).take()
            self._at_work[place] = now
            place.set()


TURNS = Turns(lambda: max(1, limits.PAGES_AT_ONCE.most))
_numbers = count(1)
_running: "dict[int, PageRun]" = {}
"""All runs that compute or wait, by number."""


class PageRun:
    """The run of a page or a fragment, as `cooperative` sees it."""

    def __init__(self) -> None:
        self._begun = self._looked = self._turn_begun = time.thread_time()
        self._place: PlaceInLine | None = None
        self._network, self.owner = reader.network(), reader.owner()
        self._session, self._is_stopped = session(), False
        self.number, self.began = next(_numbers), time.monotonic()

    @property
    def page(self) -> str:
        """The name of the page; empty until it is chosen."""
        return self._session.page

    @property
    def waits(self) -> bool:
        """Whether the run waits for a turn."""
        return self._place is None

    def stop(self) -> None:
        """End it at its next step, or while it waits."""
        self._is_stopped = True

    def begin(self) -> None:
        """Wait for the first turn; a run that is stopped before that draws nothing more."""
        try:
            self._wait(begins=True)
        except RunEnded as ended:
            say(str(ended))
            st.stop()

    def step(self) -> None:
        """End if the reader has left or the run takes too long; let another run go in between."""
        now = time.thread_time()
        if self._place is not None and now - self._looked < MOMENT:
            return
        self._looked = now
        self.check_cancelled()
        if not limits.WORK_SECONDS.allows(now - self._begun):
            raise RunEnded(limits.WORK_SECONDS.refusal())
        if self._place is None:
            self._wait(begins=False)
        elif TURNS.step(self._place) and now - self._turn_begun >= QUANTUM:
            self.release_slot()
            self._wait(begins=False)

    def check_cancelled(self) -> None:
        """End if the reader has left or the operator has stopped the run."""
        streamlit_patches.end_if_unwanted()
        if self._is_stopped:
            raise RunEnded(STOPPED)

    def release_slot(self) -> None:
        """Give up the turn until the run goes on."""
        if self._place is not None:
            TURNS.give_back(self._place)
            self._place = None

    def take_slot(self) -> None:
        """Wait for a turn again."""
        if self._place is None:
            self._wait(begins=False)

    def _wait(self, *, begins: bool) -> None:
        place = TURNS.ask(begins=begins, network=self._network, owner=self.owner)
        try:
            while not place.wait(cooperative.CHECK_SECONDS):
                self.check_cancelled()
                TURNS.look()
        except BaseException:
            TURNS.give_back(place)
            raise
        self._place, self._turn_begun = place, time.thread_time()


@contextmanager
def turn() -> Iterator[None]:
    """Wait for a turn; one after another, fifty answers all come sooner.

    Code that already has a turn takes no other. If the work is ended, the page says why.
    """
    if cooperative.current_run() is not None:
        yield
        return
    run = PageRun()
    _running[run.number] = run
    try:
        with cooperative.run_in_thread(run):
            run.begin()
            yield
    except (RunEnded, ForwardPassError) as error:
        say(str(error))
    finally:
        del _running[run.number]
        run.release_slot()


@contextmanager
def turn_elsewhere(network: str, owner: str) -> Iterator[None]:
    """A turn for one piece of a file that is made outside a page's turn.

    A file of many pieces takes one for each, so other runs go between. It ends with its reader.
    """
    place = TURNS.ask(begins=True, network=network, owner=owner)
    try:
        while not place.wait(cooperative.CHECK_SECONDS):
            streamlit_patches.end_if_unwanted()
            TURNS.look()
        streamlit_patches.end_if_unwanted()
        yield
    finally:
        TURNS.give_back(place)


def at_work() -> list[PageRun]:
    """The other runs that compute or wait now, the oldest first."""
    return [run for run in list(_running.values()) if run is not cooperative.current_run()]


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60)
SECONDS = Histogram(
    "explorer_page_seconds",
    "Seconds that the script of a page took, its wait for a turn included.",
    ["page"],
    buckets=BUCKETS,
)
ERRORS = Counter("explorer_page_errors", "Scripts of pages that ended in an error.", ["page"])


@contextmanager
def count_seconds() -> Iterator[None]:
    """Measure the page's script for Prometheus."""
    reader_session, begun = session(), time.monotonic()
    try:
        yield
    except Exception:
        ERRORS.labels(reader_session.page).inc()
        raise
    finally:
        SECONDS.labels(reader_session.page).observe(time.monotonic() - begun)

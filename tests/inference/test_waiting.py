"""What many ask for at once is made once: opened models, kept results, trained tokenizers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Lock, get_ident
from typing import Any

import pytest

from explorer.catalog import ModelError, opened_model, pass_budget, waiting
from explorer.catalog.available_models import brought_model
from explorer.catalog.opened_model import Opened
from explorer.inference import trained_tokenizers
from explorer.inference.results_cache import kept
from models.loading import checkpoint, inspection
from tests import zoo

READERS = 8


class Work:
    """Work that goes on until all readers have asked for it, or take part in it themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, readers: int = READERS) -> None:
        self.readers = readers
        self.begun = 0
        self._waiting: set[int] = set()
        self._lock = Lock()
        self._all_here = Event()
        monkeypatch.setattr(waiting, "_end_if_unwanted", self._waits)

    def _waits(self) -> None:
        with self._lock:
            self._waiting.add(get_ident())
            self._count()

    def _count(self) -> None:
        if self.begun + len(self._waiting) >= self.readers:
            self._all_here.set()

    def begin(self) -> None:
        """Somebody works now."""
        with self._lock:
            self.begun += 1
            self._count()
        self._all_here.wait()

    def before(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which is the work."""

        def worked(*arguments: Any, **named: Any) -> Any:
            self.begin()
            return real(*arguments, **named)

        return worked


def at_once(*asks: Callable[[], Any]) -> list[Any]:
    """What readers get who ask in the same moment; an error is what one gets too."""
    barrier = Barrier(len(asks))

    def asked(ask: Callable[[], Any]) -> Any:
        barrier.wait()
        return ask()

    with ThreadPoolExecutor(len(asks)) as pool:
        found = [pool.submit(asked, ask) for ask in asks]
        return [each.exception() or each.result() for each in found]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def made_once(work: Work, ask: Callable[[], Any]) -> None:
    first, *others = at_once(*[ask] * READERS)
    assert not isinstance(first, Exception), first
    assert all(each is first for each in others)
    assert work.begun == 1


def test_a_model_that_many_open_is_loaded_once(
    work: Work, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_model, "load_checkpoint", work.before(opened_model.load_checkpoint))
    opened_model._open.cache_clear()
    made_once(work, lambda: opened_model.open_model("reviews"))


def test_a_result_that_many_need_is_computed_once(work: Work, small_models: Path) -> None:
    opened = opened_model.opened_from(small_models / "letters", "letters")
    made_once(work, lambda: kept(opened, "result", work.before(object), lambda _: 1))


def test_a_tokenizer_that_many_train_is_trained_once(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, ask in {
        "train_merges": lambda: trained_tokenizers.trained_merges("low lower at once", 5),
        "train_unigram": lambda: trained_tokenizers.unigram_pieces("low lower at once", 20),
    }.items():
        again = Work(monkeypatch)
        monkeypatch.setattr(trained_tokenizers, name, again.before(vars(trained_tokenizers)[name]))
        made_once(again, ask)


def test_of_two_models_the_second_is_refused_where_the_first_took_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [brought_model(zoo.gpt2(tmp_path / name)) for name in ("one", "two")]
    needed = 4 * entries[0].parameters
    taken: list[int] = []
    work = Work(monkeypatch, readers=2)
    loads = work.before(checkpoint.read_weights)

    def read_weights(*arguments: Any) -> None:
        loads(*arguments)
        taken.append(needed)

    monkeypatch.setattr(checkpoint, "read_weights", read_weights)
    for asks in (inspection, pass_budget):
        monkeypatch.setattr(asks, "available_memory", lambda: 3 * needed // 2 - sum(taken))
    answers = at_once(*[lambda each=each: opened_model.open_entry(each) for each in entries])
    (refused,) = (each for each in answers if isinstance(each, Exception))
    assert isinstance(refused, ModelError)
    assert "of memory, more than the" in str(refused)
    assert work.begun == 1


def test_while_a_large_model_is_loaded_a_small_one_opens_and_another_large_one_waits(
    tmp_path: Path, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has taken its memory, and when it has and goes on."""
    large, other = (zoo.gpt2(tmp_path / name) for name in ("large", "other"))
    needed = 4 * brought_model(large).parameters
    taken: list[int] = []
    begun, takes, took, ends = Event(), Event(), Event(), Event()
    read_weights = checkpoint.read_weights

    def read(found: Any, model: Any) -> None:
        if found.folder == large:
            begun.set()
            takes.wait()
            taken.append(needed)
            took.set()
            ends.wait()
        read_weights(found, model)

    def leave() -> None:
        raise Left

    def opened(folder: Path) -> Opened:
        return opened_model.opened_from(folder, folder.name)

    small = small_models / "reviews"
    free = needed + 2 * opened(small).bytes
    assert free < 2 * needed
    monkeypatch.setattr(checkpoint, "read_weights", read)
    for asks in (inspection, pass_budget):
        monkeypatch.setattr(asks, "available_memory", lambda: free - sum(taken))
    monkeypatch.setattr(waiting, "_end_if_unwanted", leave)
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(opened, large)
        try:
            for comes, goes_on in ((begun, takes), (took, ends)):
                comes.wait()
                assert opened(small).name == "reviews"
                with pytest.raises(Left):
                    opened(other)
                goes_on.set()
        finally:
            takes.set()
            ends.set()
        assert loaded.result().name == "large"
    with pytest.raises(ModelError, match="of memory, more than the"):
        opened(other)
    taken.clear()
    assert opened(other).name == "other", "nothing is kept for who is done"


class FirstFails(Exception):
    """What happens to the first maker."""


def test_where_a_maker_fails_the_next_one_tries(work: Work, small_models: Path) -> None:
    opened = opened_model.opened_from(small_models / "letters", "letters")

    def make() -> object:
        work.begin()
        if work.begun == 1:
            raise FirstFails
        return object()

    answers = at_once(*[lambda: kept(opened, "result", make, lambda _: 1)] * READERS)
    (failed,) = (each for each in answers if isinstance(each, Exception))
    assert isinstance(failed, FirstFails)
    assert len({id(each) for each in answers if each is not failed}) == 1
    assert work.begun == 2


class Left(BaseException):
    """What ends a run, as Streamlit's own do."""


def test_a_reader_who_waits_may_leave_and_the_work_goes_on(
    small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is for the same thing or for the memory that another takes."""
    opened = opened_model.opened_from(small_models / "letters", "letters")
    begun, ends = Event(), Event()

    def make() -> object:
        with pass_budget.MEMORY.spend(1 << 62):
            begun.set()
            ends.wait()
        return opened

    def leave() -> None:
        raise Left

    monkeypatch.setattr(waiting, "_end_if_unwanted", leave)
    opened_model._open.cache_clear()
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(kept, opened, "result", make, lambda _: 1)
        begun.wait()
        try:
            with pytest.raises(Left):
                kept(opened, "result", object, lambda _: 1)
            with pytest.raises(Left):
                opened_model.open_model("reviews")
        finally:
            ends.set()
        assert made.result() is opened
    assert kept(opened, "result", object, lambda _: 1) is opened
    assert opened_model.open_model("reviews").name == "reviews", "nothing waits for who left"

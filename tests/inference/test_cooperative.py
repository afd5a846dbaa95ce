"""What many ask for at once is made once: opened models, kept results, trained tokenizers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Lock, get_ident
from typing import Any

import pytest

from explorer.catalog import ModelError, opened_model, pass_budget
from explorer.catalog.available_models import brought_model
from explorer.catalog.opened_model import OpenModel, open_entry
from explorer.inference import trained_tokenizers
from explorer.inference.results_cache import cached
from explorer.system import cooperative
from models.loading import checkpoint, inspection
from tests import tiny

READERS = 8


class Stays:
    """A run whose reader stays."""

    def step(self) -> None: ...

    def check_cancelled(self) -> None: ...

    def release_slot(self) -> None: ...

    def take_slot(self) -> None: ...


class Left(BaseException):
    """What ends a run, as Streamlit's own do."""


class Leaves(Stays):
    """A run whose reader leaves as soon as it has to wait."""

    def check_cancelled(self) -> None:
        raise Left


class Work(Stays):
    """Work that goes on until all readers have asked for it, or take part in it themselves."""

    def __init__(self) -> None:
        self.begun = 0
        self._waiting: set[int] = set()
        self._lock = Lock()
        self._all_here = Event()

    def check_cancelled(self) -> None:
        with self._lock:
            self._waiting.add(get_ident())
            self._count()

    def _count(self) -> None:
        if self.begun + len(self._waiting) >= READERS:
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

    def asked_by_all(self, ask: Callable[[], Any]) -> list[Any]:
        """What readers get who ask in the same moment; an error is what one gets too."""
        barrier = Barrier(READERS)

        def asked(_: int) -> Any:
            barrier.wait()
            with cooperative.run_in_thread(self):
                try:
                    return ask()
                except Exception as error:  # noqa: BLE001  it is looked at by the test
                    return error

        with ThreadPoolExecutor(READERS) as pool:
            return list(pool.map(asked, range(READERS)))

    def is_done_once(self, ask: Callable[[], Any]) -> None:
        first, *others = self.asked_by_all(ask)
        assert not isinstance(first, Exception), first
        assert all(each is first for each in others)
        assert self.begun == 1


def test_one_makes_it(letters: OpenModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of a model, the model itself, and tokenizers that are trained."""
    work = Work()
    work.is_done_once(lambda: cached(letters, "result", work.before(object), lambda _: 1))
    entry = brought_model(tiny.reference_gpt2(tmp_path / "new"))
    for module, name, ask in (
        (opened_model, "load_checkpoint", lambda: open_entry(entry)),
        (trained_tokenizers, "train_merges", lambda: trained_tokenizers.trained_merges("low", 5)),
        (trained_tokenizers, "train_unigram", lambda: trained_tokenizers.unigram_pieces("low", 20)),
    ):
        work = Work()
        monkeypatch.setattr(module, name, work.before(vars(module)[name]))
        work.is_done_once(ask)


def test_where_a_maker_fails_the_next_one_tries(letters: OpenModel) -> None:
    work = Work()

    def make() -> object:
        work.begin()
        if work.begun == 1:
            raise LookupError
        return object()

    answers = work.asked_by_all(lambda: cached(letters, "result", make, lambda _: 1))
    (failed,) = (each for each in answers if isinstance(each, Exception))
    assert isinstance(failed, LookupError)
    assert len({id(each) for each in answers if each is not failed}) == 1
    assert work.begun == 2


def test_while_a_large_model_is_loaded_a_small_one_opens_and_another_large_one_waits(
    tmp_path: Path, small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has taken its memory, and when it has and goes on; then it is refused."""
    large, other = (tiny.reference_gpt2(tmp_path / name) for name in ("large", "other"))
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

    def opened(folder: Path) -> OpenModel:
        return opened_model.open_checkpoint(folder, folder.name)

    small = small_models / "reviews"
    free = needed + 2 * opened(small).bytes
    assert free < 2 * needed
    monkeypatch.setattr(checkpoint, "read_weights", read)
    for asks in (inspection, pass_budget):
        monkeypatch.setattr(asks, "available_memory", lambda: free - sum(taken))
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(opened, large)
        try:
            for comes, goes_on in ((begun, takes), (took, ends)):
                comes.wait()
                assert opened(small).name == "reviews"
                with pytest.raises(Left), cooperative.run_in_thread(Leaves()):
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


def test_a_waiting_reader_may_leave_and_work_goes_on(letters: OpenModel, tmp_path: Path) -> None:
    """Whether it is for the same thing or for the memory that another takes."""
    begun, ends = Event(), Event()
    entry = brought_model(tiny.reference_gpt2(tmp_path / "asked"))

    def make() -> object:
        with pass_budget.MEMORY.spend(1 << 62):
            begun.set()
            ends.wait()
        return letters

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(cached, letters, "result", make, lambda _: 1)
        begun.wait()
        try:
            result = partial(cached, letters, "result", object, lambda _: 1)
            for ask in (result, partial(open_entry, entry)):
                with pytest.raises(Left), cooperative.run_in_thread(Leaves()):
                    ask()
        finally:
            ends.set()
        assert made.result() is letters
    assert cached(letters, "result", object, lambda _: 1) is letters
    assert open_entry(entry).config.kind == "decoder", "nothing waits for who left"

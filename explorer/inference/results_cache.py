"""Results of open models, kept while they are used, up to a total size.

A result is dropped with its model, and some time after its last use: most texts are read once, by
a reader who then types the next.
"""

import sys
import time
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from cachetools import TLRUCache

from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import SteppingOperations
from explorer.system.cooperative import CancellableCondition
from explorer.system.limits import RESULTS_BYTES, RESULTS_SECONDS

BYTES_KEPT = RESULTS_BYTES.most
"""Of all models together. A larger result is computed each time."""

Result = TypeVar("Result")
Key = tuple[int, Hashable]
Cache = TLRUCache[Key, tuple[Any, int]]


def cache_of(most: int, timer: Callable[[], float] = time.monotonic) -> Cache:
    """An empty cache of at most `most` bytes."""
    return TLRUCache(
        most,
        ttu=lambda _key, _pair, now: now + RESULTS_SECONDS.most,
        timer=timer,
        getsizeof=lambda pair: pair[1],
    )


_results = cache_of(BYTES_KEPT)
_finalizers: dict[int, weakref.finalize] = {}
_in_progress: set[Key] = set()
_lock = CancellableCondition()  # re-entrant: a model may be freed while a result is stored


def cached(
    opened: OpenModel,
    key: Hashable,
    make: Callable[[], Result],
    size: Callable[[Result], int] | None = None,
) -> Result:
    """The result of `make` for this model and key, kept while there is room for it.

    Between two operations on tensors its reader may leave, and others have their turn.
    It is computed once even if several threads ask at once. If that fails, the next thread tries.
    `size` returns its bytes where `size_of` cannot; those of the key are added. The result must
    not refer to `opened`, or it would keep the model alive.
    """
    place = (id(opened), key)
    with _lock:
        while place in _in_progress:
            _lock.wait()
        if (pair := _results.get(place)) is not None:
            _results[place] = pair  # restarts its time
            result: Result = pair[0]
            return result
        _in_progress.add(place)
    try:
        with SteppingOperations():
            result = make()
        nbytes = (size or size_of)(result) + size_of(key)
        with _lock:
            if nbytes <= BYTES_KEPT:
                if id(opened) not in _finalizers:
                    _finalizers[id(opened)] = weakref.finalize(opened, _forget, id(opened))
                _results[place] = (result, nbytes)
    finally:
        with _lock:
            _in_progress.discard(place)
            _lock.notify_all()
    return result


def is_cached(opened: OpenModel, key: Hashable) -> bool:
    with _lock:
        return (id(opened), key) in _results


def if_cached(opened: OpenModel, key: Hashable) -> Any:
    """The result if it is in the cache, else None."""
    with _lock:
        pair = _results.get((id(opened), key))
        return None if pair is None else pair[0]


def size_of(result: object) -> int:
    """The bytes of a value that knows them itself, as tensors do, or of plain data.

    Plain data are texts and numbers, in tuples, lists, mappings and dataclasses. A value that
    occurs twice counts twice.
    """
    nbytes = getattr(result, "bytes", None) or getattr(result, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    inside: Iterable[object] = ()
    if isinstance(result, tuple | list):
        inside = result
    elif isinstance(result, dict):
        inside = (*result, *result.values())
    elif is_dataclass(result):
        inside = (getattr(result, field.name) for field in fields(result))
    return sys.getsizeof(result) + sum(map(size_of, inside))


def forget(opened: OpenModel) -> None:
    _forget(id(opened))


def forget_unused() -> None:
    """Drop results that were not used for long; any later use of the cache does the same."""
    with _lock:
        _results.expire()


def _forget(model: int) -> None:
    """Drop the results of a freed model, whose `id` a new model may get."""
    with _lock:
        _finalizers.pop(model, None)
        for place in [place for place in _results if place[0] == model]:
            _results.pop(place, None)

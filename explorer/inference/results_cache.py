"""What was computed of opened models, kept while it is used, up to a size in all.

It goes with its model, and some time after its last use: most texts are read once, by a reader who
types the next.
"""

import sys
import time
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from cachetools import TLRUCache

from explorer.catalog.opened_model import OpenModel
from explorer.system.cooperative import CancellableCondition
from explorer.system.limits import RESULTS_BYTES, RESULTS_SECONDS

BYTES_KEPT = RESULTS_BYTES.most
"""Of all models together. What is larger than this alone is made anew each time."""

Made = TypeVar("Made")
Key = tuple[int, Hashable]
Cache = TLRUCache[Key, tuple[Any, int]]


def cache_of(most: int, timer: Callable[[], float] = time.monotonic) -> Cache:
    """An empty one, up to so many bytes."""
    return TLRUCache(
        most,
        ttu=lambda _key, _pair, now: now + RESULTS_SECONDS.most,
        timer=timer,
        getsizeof=lambda pair: pair[1],
    )


_kept = cache_of(BYTES_KEPT)
_known: dict[int, weakref.finalize] = {}
_being_made: set[Key] = set()
_lock = (
    CancellableCondition()
)  # re-entrant: a model may be given up while something is being put in


def kept(
    opened: OpenModel,
    key: Hashable,
    make: Callable[[], Made],
    size: Callable[[Made], int] | None = None,
) -> Made:
    """What `make` gives for this model and key, kept while there is room for it.

    It is made once however many threads ask at once. If that fails, the next one tries.
    `size` says how many bytes hang on it, where `size_of` cannot; those of the key are counted
    here. What is made must not refer to `opened`, or it would keep the model alive.
    """
    place = (id(opened), key)
    with _lock:
        while place in _being_made:
            _lock.wait()
        if (pair := _kept.get(place)) is not None:
            _kept[place] = pair  # from now on its time begins anew
            found: Made = pair[0]
            return found
        _being_made.add(place)
    try:
        made = make()
        held = (size or size_of)(made) + size_of(key)
        with _lock:
            if held <= BYTES_KEPT:
                if id(opened) not in _known:
                    _known[id(opened)] = weakref.finalize(opened, _forget, id(opened))
                _kept[place] = (made, held)
    finally:
        with _lock:
            _being_made.discard(place)
            _lock.notify_all()
    return made


def is_kept(opened: OpenModel, key: Hashable) -> bool:
    """Whether this is there to be had at once."""
    with _lock:
        return (id(opened), key) in _kept


def if_kept(opened: OpenModel, key: Hashable) -> Any:
    """What is there to be had at once, or None."""
    with _lock:
        pair = _kept.get((id(opened), key))
        return None if pair is None else pair[0]


def size_of(result: object) -> int:
    """Bytes of what says them itself, as tensors do, and of plain data.

    Plain are texts and numbers, in tuples, lists, mappings and dataclasses. What stands in it twice
    counts twice.
    """
    known = getattr(result, "bytes", None) or getattr(result, "nbytes", None)
    if isinstance(known, int):
        return known
    inside: Iterable[object] = ()
    if isinstance(result, tuple | list):
        inside = result
    elif isinstance(result, dict):
        inside = (*result, *result.values())
    elif is_dataclass(result):
        inside = (getattr(result, field.name) for field in fields(result))
    return sys.getsizeof(result) + sum(map(size_of, inside))


def forget(opened: OpenModel) -> None:
    """Make everything of this model anew from now on."""
    with _lock:
        for place in [place for place in _kept if place[0] == id(opened)]:
            _kept.pop(place, None)


def forget_unused() -> None:
    """Free what was not used for long; what comes next does the same."""
    with _lock:
        _kept.expire()


def _forget(model: int) -> None:
    """Its number may be another's from now on."""
    with _lock:
        _known.pop(model, None)
        for place in [place for place in _kept if place[0] == model]:
            _kept.pop(place, None)

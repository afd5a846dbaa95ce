"""The tasks that need nothing from outside, each built when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from explorer.tasks import copy, induction, negation, reverse, sort, translation
from explorer.tasks.task import Task

_BUILDERS: dict[str, Callable[[], Task]] = {
    "reverse": reverse.build,
    "copy": copy.build,
    "sort": sort.build,
    "induction": induction.build,
    "induction-control": induction.build_control,
    "negation": negation.build,
    "translation": translation.build,
}


class _Tasks(Mapping[str, Task]):
    """Name to task, in the order in which they are best met."""

    def __getitem__(self, name: str) -> Task:
        return _task(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_BUILDERS)

    def __len__(self) -> int:
        return len(_BUILDERS)


@cache
def _task(name: str) -> Task:
    return _BUILDERS[name]()


TASKS: Mapping[str, Task] = _Tasks()

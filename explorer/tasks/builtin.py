"""The tasks whose data the program generates, each built when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from explorer.tasks import copy, induction, negation, reverse, sort, translation
from explorer.tasks.task import Task

_BUILDERS: dict[str, Callable[[], Task]] = {
    "reverse": reverse.build_reverse,
    "copy": copy.build_copy,
    "sort": sort.build_sort,
    "induction": induction.build_induction,
    "induction-control": induction.build_induction_control,
    "negation": negation.build_negation,
    "translation": translation.build_translation,
}


class _Tasks(Mapping[str, Task]):
    """Name to task, in a good order to learn from."""

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

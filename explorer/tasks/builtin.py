"""The tasks whose data the program generates, each built when it is first used."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from explorer.tasks import (
    addition,
    brackets,
    copy,
    dates,
    induction,
    negation,
    reverse,
    reverse_encoder,
    sort,
    translation,
)
from explorer.tasks.task import Task

_BUILDERS: dict[str, Callable[[], Task]] = {
    "reverse": reverse.build_reverse,
    "reverse-encoder": reverse_encoder.build_reverse_encoder,
    "copy": copy.build_copy,
    "sort": sort.build_sort,
    "induction": induction.build_induction,
    "induction-control": induction.build_induction_control,
    "induction-fixed": induction.build_fixed_period,
    "negation": negation.build_negation,
    "brackets": brackets.build_brackets,
    "translation": translation.build_translation,
    "dates": dates.build_dates,
    "addition": addition.build_addition,
    "addition-leak": addition.build_addition_leak,
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

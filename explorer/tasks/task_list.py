"""All tasks: those whose data the program generates, and those of a reader's own data."""

from collections.abc import Mapping
from functools import lru_cache

from explorer.tasks.addition import AdditionLeak, AdditionTask
from explorer.tasks.brackets import Brackets
from explorer.tasks.dates import Dates
from explorer.tasks.induction import Backcopy, FixedPeriod, Induction, InductionControl
from explorer.tasks.labelled_sentences import Reviews, Sentences
from explorer.tasks.language_modelling import Characters, Shakespeare, Subwords
from explorer.tasks.letters import Copy, Reverse, ReverseEncoder, Sort
from explorer.tasks.negation import Negation
from explorer.tasks.own_pairs import PairTask
from explorer.tasks.task import CustomTask, Task
from explorer.tasks.translation import TranslationTask
from explorer.text import TextError, TrainedWith

TASKS: Mapping[str, Task] = {
    task.name: task.build()
    for task in (
        *(Reverse, ReverseEncoder, Copy, Sort, Induction, InductionControl, FixedPeriod, Backcopy),
        *(Negation, Brackets, TranslationTask, Dates, AdditionTask, AdditionLeak),
    )
}
"""In a good order to learn from."""
CUSTOM_TASKS: Mapping[str, type[CustomTask]] = {
    task.name: task for task in (Characters, Subwords, Sentences, PairTask, Shakespeare, Reviews)
}


def task_of(name: str, text: str | None = None, tokenizer: str | TrainedWith | None = None) -> Task:
    """The task of this name, of `text` where it is made of one, by default of the one that comes
    with the app. TextError says what is wrong.

    `tokenizer` is one of the task's own, a whole tokenizer.json, or that of a model which is
    trained further; the usual one without it.
    """
    if name in TASKS:
        return TASKS[name]
    if name not in CUSTOM_TASKS:
        names = ", ".join([*TASKS, *CUSTOM_TASKS])
        raise TextError(f"There is no task called {name[:60]!r}; there are {names}.")
    if tokenizer is not None and not CUSTOM_TASKS[name].tokenizers:
        raise TextError(f"The task {name} has its own tokenizer: leave the other one out.")
    return _built(name, text_for(name, text) or "", tokenizer)


def text_for(name: str, text: str | None = None) -> str | None:
    """What this task is made of: `text`, or the one that comes with the app; None for neither."""
    task = CUSTOM_TASKS.get(name)
    return None if task is None else task.bundled.text if text is None else text


def stored_tokenizer(name: str, text: str | None, tokenizer: str | None) -> str | None:
    """The whole tokenizer.json that a run of this task keeps; None if it is the usual one."""
    return None if tokenizer is None else task_of(name, text, tokenizer).tokenizer.to_json()


@lru_cache(maxsize=4)
def _built(name: str, text: str, tokenizer: str | TrainedWith | None) -> Task:
    return CUSTOM_TASKS[name].build(text, tokenizer)

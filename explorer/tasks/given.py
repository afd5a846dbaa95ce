"""Tasks that are made of a text or table which the caller gives."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from explorer.tasks import characters, own_pairs, reviews, sentences, shakespeare, subwords
from explorer.tasks.builtin import TASKS
from explorer.tasks.own_tokenizer import SUBWORDS, WORDS
from explorer.tasks.task import Task
from explorer.text import CLASSIFIER, DECODER, SOURCE, TextError, TrainedWith
from explorer.text.token import Reads


@dataclass(frozen=True)
class Given:
    """A task without its text; `columns` are those of its table, none where it wants a text.

    `tokenizers` are the trained ones among which the reader may
    choose, the usual one first; where there are any, a tokenizer.json is taken as well, for a
    model that reads with the special tokens of `reads`.
    """

    name: str
    title: str
    explanation: str
    expectation: str
    build: Callable[..., Task]
    columns: tuple[str, ...] = ()
    tokenizers: tuple[str, ...] = ()
    reads: Reads = DECODER


LABELLED, PAIRS = ("text", "label"), ("source", "target")
READS: dict[tuple[str, ...], Reads] = {(): DECODER, LABELLED: CLASSIFIER, PAIRS: SOURCE}
GIVEN = {
    module.NAME: Given(
        *(module.NAME, module.TITLE, module.EXPLANATION, module.EXPECTATION, build),
        columns=columns,
        tokenizers=tokenizers,
        reads=READS[columns],
    )
    for module, build, columns, tokenizers in (
        (characters, characters.characters_from_text, (), ()),
        (subwords, subwords.subwords_from_text, (), (SUBWORDS, WORDS)),
        (sentences, sentences.sentences_from_csv, LABELLED, (WORDS, SUBWORDS)),
        (own_pairs, own_pairs.pairs_from_csv, PAIRS, (WORDS, SUBWORDS)),
        (shakespeare, shakespeare.shakespeare_from_text, (), ()),
        (reviews, reviews.from_csv, LABELLED, ()),
    )
}


def task_of(name: str, text: str | None = None, tokenizer: str | TrainedWith | None = None) -> Task:
    """The task of this name, made of `text` where it needs one. TextError says what is wrong.

    `tokenizer` is one of the task's own, a whole tokenizer.json, or that of a model which is
    trained further; the usual one without it.
    """
    if name in TASKS:
        return TASKS[name]
    if name not in GIVEN:
        names = ", ".join([*TASKS, *GIVEN])
        raise TextError(f"There is no task called {name[:60]!r}; there are {names}.")
    if text is None:
        raise TextError(f"The task {name} is made of a text, and none was given.")
    if tokenizer is not None and not GIVEN[name].tokenizers:
        raise TextError(f"The task {name} has its own tokenizer: leave the other one out.")
    return _built(name, text, tokenizer)


def stored_tokenizer(name: str, text: str | None, tokenizer: str | None) -> str | None:
    """The whole tokenizer.json that a run keeps of this task; None where it is the usual one."""
    return None if tokenizer is None else task_of(name, text, tokenizer).tokenizer.to_json()


@lru_cache(maxsize=4)
def _built(name: str, text: str, tokenizer: str | TrainedWith | None) -> Task:
    return GIVEN[name].build(text) if tokenizer is None else GIVEN[name].build(text, tokenizer)

"""Which trained models ship with the app, and how each of them is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer.tasks import reviews
from explorer.tasks.baselines import NaiveBayes, bigram_nats
from explorer.tasks.given import task_of
from explorer.tasks.language import LanguageTask
from explorer.tasks.task import Task

KOTZIAS = (
    "Review sentences: Dimitrios Kotzias et al., From Group to Individual Labels using Deep "
    "Features, KDD 2015, CC BY 4.0."
)
SHAKESPEARE = "Text: plays of William Shakespeare, in the public domain."
NO_DATA = "No data: every example is made by the program."


@dataclass(frozen=True)
class Baseline:
    """The metric of a counting model on the same held-out data."""

    name: str
    value: float


@dataclass(frozen=True)
class Recipe:
    """One shipped model: its task, the file it learns from, the seed of its weights."""

    name: str
    file: str | None = None
    attribution: str = NO_DATA
    weights_seed: int = 0
    classes: tuple[str, ...] = ()
    """What the file's labels mean, where it has only numbers."""
    baseline: Callable[[str], Baseline] | None = None

    @property
    def command(self) -> str:
        """What makes this model again."""
        data = f" --data FOLDER_WITH_{self.file}" if self.file else ""
        return f"python -m explorer checkpoints --only {self.name}{data}"

    def task(self, text: str | None) -> Task:
        """The task, measured on everything that is held out."""
        task = task_of(self.name, text)
        return task.measuring_everything() if isinstance(task, LanguageTask) else task


def bigram(text: str) -> Baseline:
    task = task_of("shakespeare", text)
    assert isinstance(task, LanguageTask)
    nats = bigram_nats(task.training_ids, task.held_out_ids, task.tokenizer.vocab_size)
    return Baseline("smoothed bigram over the same tokens", nats)


def naive_bayes(table: str) -> Baseline:
    training, held_out = reviews.split_reviews(reviews.read_table(table)[0])
    accuracy = NaiveBayes(training).accuracy(held_out)
    return Baseline("naive Bayes on words and pairs of words", accuracy)


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("reverse", weights_seed=2),
        Recipe("induction", weights_seed=1),
        Recipe("induction-control"),
        Recipe("negation", weights_seed=1),
        Recipe("translation"),
        Recipe("shakespeare", "shakespeare.txt", SHAKESPEARE, baseline=bigram),
        Recipe(
            "reviews",
            "sentiment.csv",
            KOTZIAS,
            classes=("negative", "positive"),
            baseline=naive_bayes,
        ),
    )
}

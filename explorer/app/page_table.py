"""Every page: a new one needs only a row here and its file `pages/<section>/<name>.py`.

The navigation has one entry for each place. A place may have several pages, its views, which the
opening of each of them lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.app.choice import FRAME

SENTENCE, MODEL = ("text", "pair"), ("model", "training_step")
WITHOUT_STEP = tuple(name for name in FRAME if name != "training_step")


@dataclass(frozen=True)
class PageRow:
    """A page: its title, and the choices of the frame that it uses."""

    title: str
    bar: tuple[str, ...] = FRAME
    part: str = ""
    """The part of the pass that the miniature marks for it; empty for all or none."""
    view: str = ""
    """Its name among the views of its place, if that is not its title."""
    link: str = ""
    """The text of a link to it, if that is not its title."""
    draws_head_alone: bool = False
    """Whether it redraws only what follows the head when another head is chosen."""


NAVIGATION: dict[str, dict[str, dict[str, PageRow]]] = {
    "": {
        "Overview": {
            "overview": PageRow("Overview", view="Map"),
            "logit_lens": PageRow("Logit lens", part="stream"),
        },
        "Lessons": {"lessons": PageRow("Lessons", ())},
        "Training": {
            "training": PageRow("Training", (), view="Train", link="Train a model"),
            "runs": PageRow("Runs", (), view="Runs and races"),
            "training_history": PageRow("Training history", WITHOUT_STEP, view="Film"),
            "inside_training": PageRow("Inside training", (), view="Inside"),
        },
        "Museum": {"museum": PageRow("Museum")},
        "Models": {"checkpoints": PageRow("Models")},
    },
    "Anatomy": {
        "Tokens": {
            "tokens": PageRow(
                "Tokens", (*SENTENCE, *MODEL), "tokens", "Your sentence", "From text to tokens"
            ),
            "tokenizer_training": PageRow("Training a tokenizer", ("text",), "tokens"),
        },
        "Embedding space": {
            "embedding_space": PageRow("Embedding space", (*SENTENCE, *MODEL), "embedding"),
        },
        "Positions": {"positions": PageRow("Positions", part="positions")},
        "Head": {
            "attention": PageRow(
                "Attention maps",
                part="attention",
                view="Map",
                link="Attention maps of every head",
                draws_head_alone=True,
            ),
            "head_steps": PageRow("Head, step by step", part="attention", view="Step by step"),
            "query_key": PageRow("Query and key", part="attention"),
            "masks": PageRow("Masks", part="attention"),
        },
        "All heads": {"heads": PageRow("All heads", part="attention")},
        "Forward pass": {"forward_pass": PageRow("Forward pass")},
        "Generation": {"generation": PageRow("Generation", part="answer")},
        "Interventions": {"interventions": PageRow("Interventions")},
    },
    "For research": {
        "Circuits": {"circuits": PageRow("Circuits", link="Heads that carry a difference")},
        "Compare": {"compare": PageRow("Compare", part="attention")},
    },
}
"""By group, each place with its pages, by the name of their file, which is their address."""
PLACES: dict[str, dict[str, PageRow]] = {
    name: rows for group in NAVIGATION.values() for name, rows in group.items()
}
UNLISTED = {"Server": {"administration": PageRow("Administration", ())}}
"""Pages outside the navigation, for readers who know their address."""
ROWS = {name: row for rows in (PLACES | UNLISTED).values() for name, row in rows.items()}


def place_of(page: str) -> tuple[str, Mapping[str, PageRow]]:
    """The place of a page in the navigation, and all its pages; of another page, itself alone."""
    for name, rows in PLACES.items():
        if page in rows:
            return name, rows
    return page, {}

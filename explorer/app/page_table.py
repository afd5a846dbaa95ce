"""Every page: a new one needs only a row here and its file `pages/<section>/<name>.py`."""

from dataclasses import dataclass

from explorer.app.choice import FRAME

SENTENCE, MODEL = ("text", "pair"), ("model", "training_step")


@dataclass(frozen=True)
class PageRow:
    """A page: its title, and the choices of the frame that it uses."""

    title: str
    bar: tuple[str, ...] = FRAME
    part: str = ""
    """The part of the pass that the miniature marks for it; empty for all or none."""
    link: str = ""
    """The text of a link to it, if that is not its title."""
    draws_head_alone: bool = False
    """Whether it redraws only what follows the head when another head is chosen."""


PAGES = {
    "Overview": {"overview": PageRow("Overview")},
    "Lessons": {"lessons": PageRow("Lessons", ())},
    "Input": {
        "tokens": PageRow("Tokens", (*SENTENCE, *MODEL), "tokens", "From text to tokens"),
        "tokenizer_training": PageRow("Training a tokenizer", ("text",), "tokens"),
        "embedding_space": PageRow("Embedding space", (*SENTENCE, *MODEL), "embedding"),
        "positions": PageRow("Positions", part="positions"),
    },
    "Attention": {
        "attention": PageRow(
            "Attention maps",
            part="attention",
            link="Attention maps of every head",
            draws_head_alone=True,
        ),
        "heads": PageRow("Heads", part="attention"),
        "head_steps": PageRow("Head, step by step", part="attention"),
        "query_key": PageRow("Query and key", part="attention"),
        "masks": PageRow("Masks", part="attention"),
    },
    "Forward pass": {
        "forward_pass": PageRow("Forward pass"),
        "logit_lens": PageRow("Logit lens", part="stream"),
    },
    "Generation": {"generation": PageRow("Generation", part="answer")},
    "Experiments": {
        "interventions": PageRow("Interventions"),
        "circuits": PageRow("Circuits", link="Heads that carry a difference"),
        "compare": PageRow("Compare", part="attention"),
        "museum": PageRow("Museum"),
    },
    "Training": {
        "training": PageRow("Training", (), link="Train a model"),
        "runs": PageRow("Runs", ()),
        "training_history": PageRow("Training history"),
        "inside_training": PageRow("Inside training", ()),
    },
    "Models": {"checkpoints": PageRow("Checkpoints")},
}
"""By section, each page by the name of its file, which is its address."""
UNLISTED = {"Server": {"administration": PageRow("Administration", ())}}
"""Pages outside the navigation, for readers who know their address."""
ROWS = {name: row for section in (PAGES | UNLISTED).values() for name, row in section.items()}

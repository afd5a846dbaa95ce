"""Every page: a row here and its file `pages/<section>/<name>.py` are all that one needs."""

from dataclasses import dataclass

from explorer.app.choice import FRAME

SENTENCE, MODEL = ("text", "pair"), ("model", "training_step")


@dataclass(frozen=True)
class PageRow:
    """A page: its title, and what of that which is chosen once for all pages it uses."""

    title: str
    bar: tuple[str, ...] = FRAME
    part: str = ""
    """The part of the pass that it shows, in the miniature; all of them, or none, without one."""
    link: str = ""
    """What a link to it says, where that is not its title."""
    draws_head_alone: bool = False
    """It draws again only what follows the head when another is chosen."""


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
        "circuits": PageRow("Circuits", link="Which heads carry the difference between two texts"),
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
"""By section: the name of each page's file, which is its address, and what it is."""
UNLISTED = {"Server": {"administration": PageRow("Administration", ())}}
"""Those that are in no navigation: one has to know their address."""
ROWS = {name: row for section in (PAGES | UNLISTED).values() for name, row in section.items()}

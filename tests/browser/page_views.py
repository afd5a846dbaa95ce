"""Every view of every page, from the pages' own tables."""

import ast
from collections.abc import Iterable, Iterator
from urllib.parse import quote_plus

from explorer.inference import mask_examples
from explorer.views.compare import sides
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.shared import tokenizer_source
from tests.source import ROOT

View = tuple[str, str]
"""A page, and what is chosen on it; nothing on a page that shows one thing."""
FIND = "Find the mistake"


def table(page: str, name: str) -> list[str]:
    """The keys of a table in a page's own file, which draws when it is imported."""
    (path,) = ROOT.glob(f"pages/*/{page}.py")
    for line in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(line, ast.Assign | ast.AnnAssign) or not isinstance(line.value, ast.Dict):
            continue
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return [ast.literal_eval(key) for key in line.value.keys if key is not None]
    raise AssertionError(f"the page {page} has no table {name}")


CHOICES: dict[str, tuple[str, Iterable[str]]] = {
    "attention": ("view", table("attention", "VIEWS")),
    "circuits": ("circuit_view", table("circuits", "VIEWS")),
    "generation": ("way", table("generation", "WAYS")),
    "heads": ("side", table("heads", "SIDES")),
    "inside_training": ("inside_view", table("inside_training", "VIEWS")),
    "runs": ("runs_view", table("runs", "VIEWS")),
    "training_history": ("history_view", table("training_history", "VIEWS")),
    "museum": ("room", table("museum", "VIEWS")),
    "interventions": ("look", table("interventions", "VIEWS")),
    "checkpoints": ("show", table("checkpoints", "VIEWS")),
    "positions": ("lab", table("positions", "VIEWS")),
    "training": ("training_view", table("training", "VIEWS")),
    "tokenizer_training": ("learn_how", tokenizer_source.ALGORITHMS),
    "query_key": ("pair_view", ("Why", "Table", "Products")),
    "masks": ("example", mask_examples.EXAMPLES),
    "compare": ("with", (sides.HEAD, sides.SENTENCE, sides.MODEL, sides.STEP, sides.EDITED)),
}
"""Under which name a page's views stand in the address, and what they are called."""


WITHOUT_NUMBERS = {"server", "lessons"}
"""Sections whose pages show no number of a model."""


def pages() -> list[str]:
    """Those that show a model, or a training."""
    every = ROOT.glob("pages/*/*.py")
    return [path.stem for path in every if path.parent.name not in WITHOUT_NUMBERS]


def every() -> dict[View, str]:
    """All views, each with what an address says to open it."""
    return {view: asks for page in pages() for view, asks in _of(page)}


def _of(page: str) -> Iterator[tuple[View, str]]:
    if page not in CHOICES:
        yield (page, ""), ""
        return
    key, names = CHOICES[page]
    for name in names:
        asks = f"&{key}={quote_plus(name)}"
        if (page, name) != ("museum", FIND):
            yield (page, name), asks
            continue
        for instrument in INSTRUMENTS:
            yield (page, f"{name}: {instrument}"), f"{asks}&instrument={quote_plus(instrument)}"

"""Writes what the README says about the code from the code itself: `python -m docs.readme`.

A test compares the two, so the README cannot go out of date.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from explorer.catalog.real_models import REAL_MODELS
from explorer.text.number_format import three
from models.families import FAMILIES
from models.families.gguf_architectures import ARCHITECTURES

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BENCHMARKS = ROOT / "docs" / "benchmarks.json"
SHIPPED = ROOT / "models" / "checkpoints"
ROOMS = ("pages", "explorer", "models")
WIDTH = 26
OTHERS = {
    "models/checkpoints": "the trained models that come with the app",
    "tests": "what proves all of it; docs/testing.md says which folder proves what",
    "docs": "makes the pictures and the tables of this page",
}


def tree() -> str:
    """The rooms and their files, one line each, in the words of their docstrings."""
    lines = [line("app.py", ROOT / "app.py", 0)]
    for room in ROOMS:
        lines += branch(ROOT / room, 0)
    lines += [f"{name + '/':{WIDTH}}{OTHERS[name]}" for name in ("tests", "docs")]
    return "```\n" + "\n".join(lines) + "\n```\n"


def branch(folder: Path, depth: int) -> Iterator[str]:
    """One folder: its files if it is a room or a section, else a single line."""
    name = folder.relative_to(ROOT).as_posix()
    front = folder / "__init__.py"
    yield line(folder.name + "/", front, depth, OTHERS.get(name, ""))
    if depth and folder.parent.name != "pages":
        return
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.is_dir() and path.name[0] not in "._":
            yield from branch(path, depth + 1)
        elif path.suffix == ".py" and path.name[0] != "_":
            yield line(path.name, path, depth + 1)


def line(name: str, path: Path, depth: int, otherwise: str = "") -> str:
    return f"{'  ' * depth + name:{WIDTH}}{purpose(path) or otherwise}".rstrip()


def purpose(path: Path) -> str:
    """The first sentence of a module's docstring."""
    if not path.exists():
        return ""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")


def runs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(SHIPPED.glob("*/run.json")):
        yield path.parent.name, json.loads(path.read_text("utf-8"))


def checkpoints() -> str:
    """What each shipped model reaches, beside its baseline, and whose text it learned from."""
    lines = ["| Model | What it is | Held out | Baseline | Learned from |", "|---|---|---|---|---|"]
    for name, run in runs():
        config = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))
        kind = f"{config['kind']}, {config['n_layers']} × {config['n_heads']} heads"
        reached = ", ".join(f"{metric} {three(value)}" for metric, value in run["metrics"].items())
        beaten = run.get("baseline")
        baseline = f"{beaten['name']} {three(beaten['value'])}" if beaten else "–"
        source = run["data"].get("attribution") or "drawn from the seed"
        size = f"{run['parameters']:,} parameters"
        lines.append(f"| {run['title']} | {kind}, {size} | {reached} | {baseline} | {source} |")
    return "\n".join(lines) + "\n"


def real_models() -> str:
    """The shelf of models that are downloaded when somebody asks."""
    lines = ["| `get` | Model | Good to look at | Download | Licence |", "|---|---|---|---|---|"]
    for name, model in REAL_MODELS.items():
        what = f"{model.title}, by {model.made_by}: {model.kind}"
        size = f"{model.download / 1e6:,.0f} MB"
        lines.append(f"| `{name}` | {what} | {model.good_for} | {size} | {model.licence} |")
    return "\n".join(lines) + "\n"


def families() -> str:
    """The `model_type`s that open, in the order of their table."""
    return ", ".join(f"`{name}`" for name in FAMILIES) + ".\n"


def architectures() -> str:
    """The `general.architecture`s of GGUF files that open, in the order of their table."""
    return ", ".join(f"`{name}`" for name in ARCHITECTURES) + ".\n"


def figures() -> str:
    """The table of the last run of all benchmarks, and the machine it ran on."""
    found = json.loads(BENCHMARKS.read_text("utf-8"))
    on = found["machine"]
    lines = [
        f"Measured on {on['date']} on {on['cores']} shared cores ({on['processor']}, no graphics "
        f"card) with Python {on['python']} and torch {on['torch']}.",
        "",
        figures_header(),
        *map(figures_row, found["rows"]),
    ]
    return "\n".join(lines) + "\n"


def figures_header() -> str:
    return "| What | Ours | Reference | Ratio | Goal | Met | Load |\n|---|---|---|---|---|---|---|"


def figures_row(row: dict[str, Any]) -> str:
    """`load` is how many cores others had just before or after, the larger of both."""
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.3g} ×"
    met = {True: "yes", False: "no", None: "–"}[row["met"]]
    cells = [row["what"], row["ours"], row["reference"], ratio, row["goal"], met, row["load"]]
    return f"| {' | '.join(map(str, cells))} |"


BLOCKS: dict[str, Callable[[], str]] = {
    "architectures": architectures,
    "checkpoints": checkpoints,
    "families": families,
    "figures": figures,
    "real models": real_models,
    "tree": tree,
}


def filled(text: str) -> str:
    """The README with every block made anew."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"the README has no place for {name}"
        text = before + begin + make() + end + after
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text("utf-8")), "utf-8")

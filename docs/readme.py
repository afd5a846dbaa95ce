"""Writes what the README and these pages say of the code from the code: `python -m docs.readme`.

A page has a block, such as `<!-- rooms -->` to `<!-- /rooms -->`, where one is to be made. A test
compares the two, so no page goes out of date.
"""

import ast
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from docs.addresses import table
from docs.api import reference
from explorer.catalog.pretrained_models import PRETRAINED_MODELS
from explorer.text.number_format import fixed, three
from explorer.views.museum.exhibits import EXHIBITS, Exhibit
from models.families import FAMILIES
from models.families.gguf_architectures import ARCHITECTURES

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SECURITY = ROOT / "SECURITY.md"
PAGES = (README, SECURITY, *sorted((ROOT / "docs").rglob("*.md")))
SECURITY_TESTS = ROOT / "docs" / "security_tests.toml"
BENCHMARKS = ROOT / "docs" / "benchmarks.json"
SHIPPED = ROOT / "models" / "checkpoints"
FEW = (
    "training step, 2+2 layers, d 256",
    "all attention weights and all logits, GPT-2 small, 128",
    "everything recorded, GPT-2 small, 128",
    "opening the folder of GPT-2 small",
    "server start",
    "another head, of toy models and of SmolLM2's sizes at 32 tokens, click to paint",
    "overview of 144 heads at 128 tokens: navigation",
    "50 readers",
    "server memory of each further reader",
)
"""How the rows begin that the README has."""


def rooms() -> str:
    """The folders of the code with what each holds, in the words of their docstrings."""
    folders = [*sorted((ROOT / "explorer").glob("*/__init__.py")), ROOT / "models" / "__init__.py"]
    rows = [f"| `{path.parent.relative_to(ROOT)}` | {purpose(path)} |" for path in folders]
    return "\n".join(["| Room | What it holds |", "|---|---|", *rows]) + "\n"


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
    """What each shipped model reaches ± its standard error, its baseline, and whose text it is."""
    lines = ["| Model | What it is | Held out | Baseline | Learned from |", "|---|---|---|---|---|"]
    for name, run in runs():
        config = json.loads((SHIPPED / name / "config.json").read_text("utf-8"))
        kind = f"{config['kind']}, {config['n_layers']} × {config['n_heads']} heads"
        error = run["standard_error"]
        reached = ", ".join(
            f"{metric} {with_error(value, error)}" for metric, value in run["metrics"].items()
        )
        beaten = run.get("baseline")
        baseline = f"{beaten['name']} {three(beaten['value'])}" if beaten else "–"
        source = run["data"].get("attribution") or "drawn from the seed"
        size = f"{run['parameters']:,} parameters"
        lines.append(f"| {run['title']} | {kind}, {size} | {reached} | {baseline} | {source} |")
    return "\n".join(lines) + "\n"


def with_error(value: float, error: float) -> str:
    """A measured value ± its standard error, both as exact as one digit of the error."""
    if not error > 0:
        return three(value)
    places = max(0, -math.floor(math.log10(float(f"{error:.1g}"))))
    return f"{fixed(value, places)} ± {fixed(error, places)}"


def pretrained_models() -> str:
    """The models that are downloaded when somebody asks."""
    lines = ["| `get` | Model | Good to look at | Download | Licence |", "|---|---|---|---|---|"]
    for name, model in PRETRAINED_MODELS.items():
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


def figures(shown: Callable[[str], bool] = lambda what: True) -> str:
    """The table of the last run of all benchmarks, and the machine it ran on."""
    found = json.loads(BENCHMARKS.read_text("utf-8"))
    on = found["machine"]
    lines = [
        f"Measured on {on['date']} on {on['cores']} shared cores ({on['processor']}, no graphics "
        f"card) with Python {on['python']} and torch {on['torch']}.",
        "",
        figures_header(),
        *(figures_row(dated(row, on)) for row in found["rows"] if shown(row["what"])),
    ]
    return "\n".join(lines) + "\n"


def dated(row: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    """A row that was measured later than the others says when."""
    later = row["date"] != on["date"]
    return {**row, "what": f"{row['what']}, on {row['date']}"} if later else row


def few_figures() -> str:
    """Those that a reader of the README asks for first."""
    return figures(lambda what: what.startswith(FEW))


def figures_header() -> str:
    return "| What | Ours | Reference | Ratio | Goal | Met | Load |\n|---|---|---|---|---|---|---|"


def figures_row(row: dict[str, Any]) -> str:
    """`load` is how many cores others had just before or after, the larger of both."""
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.3g} ×"
    met = {True: "yes", False: "no", None: "–"}[row["met"]]
    cells = [row["what"], row["ours"], row["reference"], ratio, row["goal"], met, row["load"]]
    return f"| {' | '.join(map(str, cells))} |"


def mistakes() -> str:
    """The museum's exhibits: what is wrong, what is right, how to spot it, numbers of both."""
    return "\n".join(map(mistake, EXHIBITS))


def mistake(exhibit: Exhibit) -> str:
    """One exhibit, with the numbers of the document's own configuration where it has some."""
    lines = [
        f"## {exhibit.label}\n",
        f"**In the {exhibit.where}.** {exhibit.error}\n",
        f"**Right.** {exhibit.right}\n",
        f"**How to spot it.** {exhibit.how_to_spot}\n",
        f"In the app: `/museum?exhibit={quote_plus(exhibit.label)}`\n",
    ]
    if exhibit.numbers:
        lines.append(table(exhibit.columns, exhibit.numbers))
    return "\n".join(lines)


def security_tests() -> str:
    """The tests that prove each row of the threat model."""
    rows = tomllib.loads(SECURITY_TESTS.read_text("utf-8"))
    return "".join(
        f"- **{row}**\n" + "".join(f"  - `{test}`\n" for test in tests)
        for row, tests in rows.items()
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "api": reference,
    "architectures": architectures,
    "checkpoints": checkpoints,
    "families": families,
    "few figures": few_figures,
    "figures": figures,
    "mistakes": mistakes,
    "pretrained models": pretrained_models,
    "rooms": rooms,
    "security tests": security_tests,
}


def blocks_of(text: str) -> list[str]:
    """The names of the blocks that a page has."""
    return re.findall(r"^<!-- ([a-z ]+) -->$", text, re.MULTILINE)


def filled(text: str) -> str:
    """A page with every block made anew."""
    for name in blocks_of(text):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"the end of {name} is missing"
        text = before + begin + BLOCKS[name]() + end + after
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")

"""The site of these pages: `.venv/bin/sphinx-build -W --keep-going -c docs . SITE`.

The pages are plain Markdown and refer to each other as they do in the repository, whose root is
therefore the source. `docs/README.md` is the first page, and its lists are the navigation.
Formulas become MathML when the site is built, so it needs no script and no other host.
"""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
project = "Attention explorer"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"),
    "**/__pycache__",
]
html_theme = "furo"
html_title = project
html_math_renderer = "mathml"
html_copy_source = False
html_extra_path = ["front"]
nitpicky = True


def with_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds what the first page lists to the sidebar: a caption for each heading."""
    if page != root_doc:
        return
    _, *sections = source[0].split("\n## ")
    for section in sections:
        caption, _, rest = section.partition("\n")
        names = [f"/{path}" for path in map(from_root, re.findall(r"\]\(([^)#:]+\.md)\)", rest))]
        entries = "\n".join(names)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def from_root(link: str) -> str:
    """A link of the first page, as the path of a page from the root."""
    return (ROOT / "docs" / link).resolve().relative_to(ROOT).with_suffix("").as_posix()


def inline_math(page: Any, node: Any) -> None:
    page.body.append(convert(node.astext()))
    node.clear()


def block_math(page: Any, node: Any) -> None:
    page.body.append(convert(node.astext(), display="block"))
    node.clear()


def setup(app: Sphinx) -> None:
    app.connect("source-read", with_navigation)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))

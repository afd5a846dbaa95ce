"""What axe finds on a page: https://github.com/dequelabs/axe-core, from a Python package."""

from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Page

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
RULES = ("heading-order", "page-has-heading-one", "landmark-one-main", "html-has-lang", "region")
"""Of what is less than serious, what a page promises all the same."""
FIND = """async rules => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations
    .filter(({id, impact}) => ["serious", "critical"].includes(impact) || rules.includes(id))
    .flatMap(({id, nodes}) => nodes.map(({target, html, any, all, none}) => [
      id, target.flat().at(-1), html.slice(0, 160),
      [...any, ...all, ...none].map(each => each.message).join(" "),
    ]));
}"""


def findings(page: Page) -> list[str]:
    """Each a line: the rule, where, the element, and what is wrong with it.

    Playwright evaluates past the page's security policy, which lets in no foreign script.
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(f"{AXE}\n;undefined")
    found: list[Any] = page.evaluate(FIND, list(RULES))
    return [" | ".join(map(str, each)) for each in found]

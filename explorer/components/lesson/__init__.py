"""The lesson in the browser: the head of its panel, and the list of lessons with one's progress.

What the reader has done is kept in the browser alone (localStorage) and sent nowhere. The next
step is gone to as the browser's Back goes back, so that every control follows the address; that
a step is done is seen from the address as well.
"""

from typing import Any

from explorer.app.address_parameters import AROUND
from explorer.components.mounting import component, script, style

STRIP_HTML = """
<div class="lesson-strip" role="group" aria-label="Lesson">
  <div class="heads">
    <span class="where"></span><span class="count"></span>
    <h2 class="step"></h2><span class="mark" hidden>✓ done</span>
    <span class="said" role="status"></span>
  </div>
  <div class="moves">
    <button type="button" class="plain return" hidden>Back to the step</button>
    <button type="button" class="plain show-me" hidden>Show me</button>
    <button type="button" class="plain following" hidden></button>
    <span class="dots"></span>
    <button type="button" class="back" data-lesson-step="-1">Back</button>
    <button type="button" class="next" data-lesson-step="1">Next</button>
    <button type="button" class="plain leave" aria-label="Leave the lesson" title="Leave the lesson"
      >✕</button>
  </div>
</div>
"""


def _component(name: str, html: str, file: str) -> Any:
    """In the page's own tree: keys of the presenter and outlines of controls reach out of it."""
    js, css = script(f"lesson/{file}.js", AROUND=AROUND), style(f"lesson/{file}.css")
    return component(name, js, css, html, isolate_styles=False)


_STRIP = _component("explorer_lesson_strip", STRIP_HTML, "strip")


def lesson_strip(data: dict[str, Any]) -> None:
    """The head of the panel; `data` is what `explorer.views.lessons.panel` says of the step."""
    _STRIP(key="lesson_strip", data=[data])


LIST_HTML = """
<ol class="lesson-list"></ol>
<button type="button" class="lesson-forget" hidden>Forget my progress in this browser</button>
"""

_LIST = _component("explorer_lesson_list", LIST_HTML, "list")


def lesson_list(rows: list[dict[str, Any]]) -> None:
    """The list, a row for each lesson; its progress is the browser's own."""
    _LIST(key="lesson_list", data=rows)

"""The start of every page: it opens at its top, with rules for Streamlit's own parts.

The rules of `page_top.css` reach the whole page: words that Streamlit writes too faintly, a focus
that it draws too weakly, what does not fit into a narrow window. `docs/accessibility.md` lists
them.
"""

from explorer.app import links
from explorer.app.session import session
from explorer.charts import theme
from explorer.components.mounting import component, script, style


def page_rules() -> str:
    """The rules with the colours of the theme in them, each a light and a dark one."""
    rules = style("page_top.css")
    for name in ("muted", "text", "background"):
        pair = (getattr(palette, name) for palette in (theme.LIGHT, theme.DARK))
        rules = rules.replace(f"var(--{name})", f"light-dark({', '.join(pair)})")
    return rules


_PAGE_TOP = component(
    "explorer_page_top", script("page_top.js"), page_rules(), isolate_styles=False
)


def page_top() -> None:
    reader = session()
    _PAGE_TOP(key="page_top", data=[reader.page, links.of_the_page(reader.hidden)])

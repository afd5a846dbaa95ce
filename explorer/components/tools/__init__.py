"""What the tools at the foot of the sidebar do in the browser alone: the theme, and a link.

Streamlit's page holds its theme in the browser, and no message of a script reaches it. So the
switch does what the theme switch of Streamlit's own menu does, which the app does not show.
"""

from collections.abc import Mapping, Sequence

from explorer.components.mounting import component, script, style

THEMES = {"Light": "light_mode", "System": "contrast", "Dark": "dark_mode"}
"""As Streamlit calls them, and the icon of each in its font."""
_CHOICES = "".join(
    f'<label title="{name} theme"><input type="radio" name="theme" value="{name}" '
    f'aria-label="{name} theme"><span aria-hidden="true">{icon}</span></label>'
    for name, icon in THEMES.items()
)
_THEME = component(
    "explorer_theme",
    html=f'<div class="themes" role="radiogroup" aria-label="Theme">{_CHOICES}</div>',
    css=style("tools/theme.css"),
    js=script("tools/theme.js"),
)
_LINK = component(
    "explorer_copy_link",
    html='<div class="link"><input readonly aria-label="Link to this page">'
    '<button type="button" aria-live="polite">Copy link</button></div>'
    '<a class="opens" target="_blank" rel="noopener">Open it in a new tab</a>',
    css=style("tools/copy_link.css"),
    js=script("tools/copy_link.js"),
)


def copy_link(added: Mapping[str, Sequence[str]], *, key: str) -> None:
    """The link to the page as it is, with these parameters instead of its own of the same names."""
    _LINK(key=key, data=[[name, list(values)] for name, values in added.items()])


def theme_switch(addresses: Sequence[str], *, key: str) -> None:
    """Light, dark, or as the system has it; kept in the browser for all of these addresses."""
    _THEME(key=key, data=list(addresses), width="content")

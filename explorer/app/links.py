"""What a link says about the app around a page: its version, and the controls that it hides.

A hidden control keeps the value that the link gives it. Hidden controls of the bar and the
navigation are not drawn. Those of a page are drawn but not displayed (`page_top.js`), so that their
parameters stay in the address, and no key reaches them.
"""

from collections.abc import Mapping, Sequence

from explorer.app import address
from explorer.app.address_parameters import PARAMETERS, VERSION
from explorer.app.choice import FRAME
from explorer.app.page_table import PLACES
from explorer.app.session import session
from explorer.catalog.folders import own_name
from explorer.text.visible_text import cut, in_quotes

HIDDEN, SHOW_ALL, MODELS = "hidden", "show_all", "Models"
PANELS = ("code", "export")
UNDO = frozenset({"hide"})
"""Undoes a click in a picture, so it is never hidden."""
STREAMLITS = ("embed", "embed_options")
BAR = tuple(name for name in FRAME if name != "special")
OLD_SECTIONS = {
    "Input": ("Tokens", "Embedding space", "Positions"),
    "Attention": ("Head", "All heads"),
    "Heads": ("All heads",),
    "Experiments": ("Interventions", "Circuits", "Compare", "Museum"),
}
"""The sections and places of the navigation before 2026-12, with their places now."""
MOST_NAMES_QUOTED = 3
"""Names that a message quotes at most."""


def can_be_hidden(page: str) -> dict[str, str]:
    """The labels of what a link to this page can hide, with its place; not the model.

    Only what the page has drawn, or what is hidden already.
    """
    reader = session()
    controls = reader.controls.get(page, set()) | reader.hidden
    rows = [row for row in PARAMETERS if page in row.pages and row.kind != "state"]
    places = {
        "Bar": [name for name in reader.uses if name in BAR and name != "model"],
        "Page": [row.name for row in rows if row.name not in UNDO],
        "Under the page": [*PANELS],
    }
    labels = {
        name: f"{place}: {_label(name)}"
        for place, names in places.items()
        for name in names
        if name in controls
    }
    links = {
        name: f"Navigation: {name}"
        for name in PLACES
        if name not in reader.hidden or name in chosen()
    }
    return labels | links


def _label(name: str) -> str:
    """The label of a control, after that of the panel that it is in."""
    row = address.row_of(name)
    return f"{address.row_of(row.inside).label}, {row.label}" if row.inside else row.label


def chosen() -> frozenset[str]:
    """What the link itself hides; a section of an older link is its places now."""
    names = address.values_of(HIDDEN)
    return frozenset(place for name in names for place in OLD_SECTIONS.get(name, (name,)))


def hidden() -> frozenset[str]:
    """What the address hides, as far as it can be hidden on any page."""
    names = chosen() & _hideable()
    # Without the list of models, a reader who opens another model could not return.
    return frozenset(names | {MODELS} if "model" in names else names)


def of_the_page(names: frozenset[str]) -> list[str]:
    """The names that the browser does not display; each is a key, and so a CSS class."""
    return sorted(names - {SHOW_ALL, *FRAME, *PLACES})


def names_somebodys(added: Mapping[str, Sequence[str]]) -> bool:
    """Whether a link to this page names a run or a model that only its link opens."""
    values = [value for _, value in address.everything()] + [v for vs in added.values() for v in vs]
    return any(own_name(value) != value for value in values)


def show_all() -> None:
    """For a callback: hide nothing any more."""
    address.remove(HIDDEN)


def notes() -> list[str]:
    """A sentence for each thing that is wrong with these parameters."""
    sentences = []
    unknown = sorted(chosen() - _hideable())
    if unknown:
        sentences.append(f"“hidden” names {quoted_names(unknown)}, and no control has that name.")
    version = address.value_of("version")
    if version:
        sentences += _notes_on_version(version)
    folded = address.value_of("sidebar")
    if folded not in ("", "folded"):
        sentences.append(address.invalid_option("sidebar", folded, "it unfolded"))
    return sentences


def is_folded() -> bool:
    """Whether the address folds the sidebar."""
    return address.value_of("sidebar") == "folded"


def _notes_on_version(version: str) -> list[str]:
    """A link of a newer version gets a note; an older one needs none."""
    number = address.whole_number(version)
    if number is None:
        return [address.invalid_option("version", version, f"it as version {VERSION}")]
    if number <= VERSION:
        address.remove("version")
        return []
    names = [name for name in dict(address.everything()) if name not in STREAMLITS]
    unknown = [name for name in names if not address.is_declared(name)]
    if not unknown:
        return ["This link was made by a newer version of the app. Here it means the same."]
    return [
        f"This link was made by a newer version of the app. {quoted_names(unknown)} "
        f"{'is' if len(unknown) == 1 else 'are'} unknown here and ignored."
    ]


def quoted_names(names: Sequence[str]) -> str:
    """The first few names in quotes."""
    quoted = [in_quotes(cut(name, address.LONGEST_QUOTED)) for name in names[:MOST_NAMES_QUOTED]]
    if more := names[MOST_NAMES_QUOTED:]:
        quoted.append(f"{len(more):,} more")
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _hideable() -> frozenset[str]:
    of_pages = {row.name for row in PARAMETERS if row.pages and row.kind != "state"}
    return frozenset({SHOW_ALL, *BAR, *PANELS, *of_pages - UNDO, *PLACES})

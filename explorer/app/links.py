"""What a link says of the app around a page: its version, and which controls a class does not see.

A hidden control keeps the value that the link gives it. Those of the bar and of the navigation are
not drawn; those of a page are drawn and not displayed (`page_top.js`), so that what they are bound
to stays as it is, and no key reaches them.
"""

from explorer.app import address
from explorer.app.address_parameters import PARAMETERS, VERSION
from explorer.app.choice import FRAME
from explorer.app.session import session
from explorer.text.visible_text import cut

HIDDEN, SHOW_ALL, MODELS = "hidden", "show_all", "Models"
PANELS = ("code", "export")
UNDO = frozenset({"hide"})
"""Undoes what a click in a picture does, so it is never hidden."""
STREAMLITS = ("embed", "embed_options")
BAR = tuple(name for name in FRAME if name != "special")
MOST_NAMES_QUOTED = 3
"""Names that a message quotes at most."""


def can_be_hidden(page: str) -> dict[str, str]:
    """What a link to this page can hide but the model: where it stands, and what is read there.

    Only what was drawn on the page, or is hidden already.
    """
    reader = session()
    drawn = reader.controls.get(page, set())
    rows = [row for row in PARAMETERS if page in row.pages and row.kind != "state"]
    places = {
        "Bar": [name for name in reader.uses if name in BAR and name != "model"],
        "Page": [row.name for row in rows if row.name not in UNDO],
        "Under the page": [*PANELS],
    }
    found = {
        name: f"{place}: {_label(name)}"
        for place, names in places.items()
        for name in names
        if name in drawn or name in reader.hidden
    }
    sections = {
        name: f"Navigation: {title}"
        for name, title in reader.sections.items()
        if name not in reader.hidden or name in chosen()
    }
    return found | sections


def _label(name: str) -> str:
    """What stands at a control, behind the name of the panel that it is in."""
    row = address.row_of(name)
    return f"{address.row_of(row.inside).label}, {row.label}" if row.inside else row.label


def chosen() -> frozenset[str]:
    """What the link itself hides, without what follows from it."""
    return frozenset(address.values_of(HIDDEN))


def hidden() -> frozenset[str]:
    """What the address hides; only what can be hidden, on any page."""
    names = {name for name in address.values_of(HIDDEN) if name in _known()}
    # Without a list of models, another one that is opened could not be left again.
    return frozenset(names | {MODELS} if "model" in names else names)


def of_the_page(names: frozenset[str]) -> list[str]:
    """Those that the browser does not display: each is a key, and so a class in the page."""
    return sorted(names - {SHOW_ALL, *FRAME, *session().sections})


def show_all() -> None:
    """For a callback: nothing is hidden any more."""
    address.remove(HIDDEN)


def notes() -> list[str]:
    """What is wrong with what the address says of the link, in a sentence each."""
    found = []
    unknown = [name for name in address.values_of(HIDDEN) if name not in _known()]
    if unknown:
        found.append(f"“hidden” names {_listed(unknown)}, and no control is called so.")
    version = address.value_of("version")
    if version:
        found += _notes_on_version(version)
    folded = address.value_of("sidebar")
    if folded not in ("", "folded"):
        found.append(address.invalid_option("sidebar", folded, "it unfolded"))
    return found


def is_folded() -> bool:
    """Whether the address folds the sidebar."""
    return address.value_of("sidebar") == "folded"


def _notes_on_version(version: str) -> list[str]:
    """A link of this version or an earlier one needs no word."""
    number = address.whole_number(version)
    if number is None:
        return [address.invalid_option("version", version, f"it as version {VERSION}")]
    if number <= VERSION:
        address.remove("version")
        return []
    unknown = [name for name in dict(address.everything()) if not _is_understood(name)]
    if not unknown:
        return ["This link was made by a newer version of the app, which says here the same."]
    return [
        f"This link was made by a newer version of the app: {_listed(unknown)} "
        f"{'is' if len(unknown) == 1 else 'are'} not understood here and left out."
    ]


def _is_understood(name: str) -> bool:
    rows = [row for row in PARAMETERS if row.name == name]
    page = session().page
    return name in STREAMLITS or any(not row.pages or page in row.pages for row in rows)


def _listed(names: list[str]) -> str:
    """In quotes, the first few."""
    quoted = [f"“{cut(name, address.LONGEST_QUOTED)}”" for name in names[:MOST_NAMES_QUOTED]]
    if more := names[MOST_NAMES_QUOTED:]:
        quoted.append(f"{len(more):,} more")
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _known() -> frozenset[str]:
    of_pages = {row.name for row in PARAMETERS if row.pages and row.kind != "state"}
    return frozenset({SHOW_ALL, *BAR, *PANELS, *of_pages - UNDO, *session().sections})

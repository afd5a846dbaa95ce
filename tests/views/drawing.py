"""What tests of drawn pages share: every view's address, what a view was sent, odd models."""

import contextlib
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from explorer.app.session import SESSION_KEY
from explorer.catalog import opened_model
from explorer.components import wire
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from tests import apps
from tests.browser.page_views import CHOICES
from tests.source import ROOT
from tests.tiny import save_model

WITHOUT_VIEWS = {"server", "lessons"}
"""Sections whose pages show nothing of a model; they have tests of their own."""
PAGES = sorted(path for path in ROOT.glob("pages/*/*.py") if path.parent.name not in WITHOUT_VIEWS)
"""Those that show a model, or a training."""
OF_A_RUN = {
    ("experiments/compare", "A training step"),
    ("experiments/circuits", "Over training"),
    *(("training/training_history", name) for name in CHOICES["training_history"][1]),
    *(("training/inside_training", name) for name in CHOICES["inside_training"][1]),
}
"""Only where snapshots of a training lie beside the model."""


def path_of(page: Path) -> str:
    """What `apps.page` opens, such as "attention/heads"."""
    return f"{page.parent.name}/{page.stem}"


def every_view() -> list[tuple[str, dict[str, str]]]:
    """Every view of every page: the page, and what its address asks for."""
    found = []
    for page in PAGES:
        key, names = CHOICES.get(page.stem, ("", [""]))
        for name in names:
            if (path_of(page), name) not in OF_A_RUN:
                found.append((path_of(page), {key: name} if key else {}))
    return found


def sent(at: AppTest, key: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The message that the view under this key was sent: its header and its planes of numbers."""
    (view,) = (view for view in at.get("bidi_component") if view.key == key)
    return wire.unpack(view.proto.bytes)


def notes(at: AppTest) -> list[str]:
    return [text.value for text in at.text if "cannot be" in text.value]


def titles(at: AppTest) -> list[str]:
    """The titles that the maps of a page show."""
    maps = [view for view in at.get("bidi_component") if view.key in apps.views(at)]
    words = (wire.unpack(view.proto.bytes)[0].get("words", {}) for view in maps if view.proto.bytes)
    return [each["title"] for each in words if "title" in each]


def handed(at: AppTest, name: str) -> Any:
    """What stands beside the picture under this name."""
    named, value, *_ = apps.component_data(at, f"{name}-choice")
    assert named == name
    return value


def cells(at: AppTest, key: str) -> dict[str, dict[str, str]]:
    """What a board shows: rows by their names, cells by their columns."""
    header, _ = sent(at, key)
    columns = [name for name, *_ in header["columns"]]
    return {
        row["name"]: dict(zip(columns, (cell[0] for cell in row["cells"]), strict=True))
        for row in header["rows"]
    }


def steps_of(at: AppTest, key: str) -> int:
    """How many steps the player of this parameter has."""
    return int(sent(at, f"{key}_steps")[0]["count"])


def press(at: AppTest, key: str) -> AppTest:
    return apps.run(at.button(key=key).click())


def put_state(at: AppTest, **state: object) -> AppTest:
    """Draw it again with this in its session, as a view would report it."""
    for key, value in state.items():
        at.session_state[key] = value
    return apps.run(at)


def run_parts(at: AppTest, which: slice = slice(None)) -> AppTest:
    """Draw these parts of the page alone, one after another, as clicks in them do."""
    ask = LocalScriptRunner.request_rerun
    for part in [*at._fragment_storage._fragments][which]:

        def of_the_part(runner: LocalScriptRunner, asked: Any, part: str = part) -> bool:
            runner._requests = type(runner._requests)()  # it began with a whole page
            return ask(runner, replace(asked, fragment_id_queue=[part]))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalScriptRunner, "request_rerun", of_the_part)
            at.run()
        assert not at.exception
    return at


def persistent(at: AppTest, name: str) -> dict[str, Any]:
    """The choices that this page keeps while their controls are not drawn."""
    found: dict[str, Any] = at.session_state[SESSION_KEY].persistent[name]
    return found


def put_persistent(at: AppTest, name: str, **values: object) -> AppTest:
    """Draw it again with these choices instead."""
    at.session_state[SESSION_KEY].persistent[name] = dict(values)
    return apps.run(at)


def pasted(at: AppTest) -> str:
    """The lines to paste of an opened page."""
    return str(put_state(at, code=True).code[0].value)


def run(lines: str, models: Path | None = None) -> tuple[dict[str, Any], list[str]]:
    """What these lines make in a fresh namespace, where the README is, and what they print.

    `models` is where models lie that are not the project's: the lines name those in short.
    """
    if models:
        lines = re.sub(
            r"(?<= = )(Path|Run)\('([^'/]+)'\)",
            lambda short: f"{short[1]}({str(models / short[2])!r})",
            lines,
        )
    made: dict[str, Any] = {"__name__": "pasted"}
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines, "pasted", "exec"), made)
    assert printed.getvalue().strip(), "pasted lines end in something to see"
    return made, printed.getvalue().splitlines()


def long_model(folder: Path, name: str, **more: Any) -> None:
    """An untrained decoder of letters that reads two thousand of them."""
    letters = character_tokenizer("abc ", DECODER)
    save_model(folder, name, letters, "abc", **{"max_len": 2_048, **more})


def without_numbers(name: str) -> None:
    """From now on the first queries of this model, as it is opened, are no numbers."""
    named = dict(opened_model.open_model(name).model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))


def with_overflow(name: str, part: str) -> None:
    """From now on the forward pass of this model is not finite: a layer is too large, or a logit.

    Its weights stay finite where it is a layer.
    """
    named = dict(opened_model.open_model(name).model.named_parameters())
    if part == "logits":
        named["head.bias"].data[1] = float("inf")
        return
    for parameter, values in named.items():
        if ".blocks.0." in parameter:
            values.data.mul_(1e20)

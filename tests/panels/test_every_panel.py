"""Every view of every page has lines to paste, and every kind of stage of a pass its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import library
from explorer.analysis.walk import stages_of
from tests import apps, zoo
from tests.browser.truth.views import CHOICES, pages
from tests.panels.pasting import as_array, panel, run
from tests.source import ROOT

NOT_OFFERED = {("compare", "A training step")}
"""Only where snapshots of a training lie beside the model, as none do here."""
VIEWS = [
    (page, key, name)
    for page in sorted(pages())
    for key, names in [CHOICES.get(page, ("", [""]))]
    for name in names
    if (page, name) not in NOT_OFFERED
]


def test_every_view_has_lines_to_paste(small_models: Path, subtests: pytest.Subtests) -> None:
    for page, key, name in VIEWS:
        with subtests.test(page=page):
            (path,) = ROOT.glob(f"pages/*/{page}.py")
            asked = {key: name} if key else {}
            at = apps.page(f"{path.parent.name}/{page}", model="letters", part="Decoder", **asked)
            at.session_state["code"] = True
            at.run()
            assert not at.exception
            if key:
                assert at.session_state[key] == name, "this is the view that was asked for"
            assert "Run this in the folder of the README:" in [
                caption.value for caption in at.caption
            ]
            assert "import" in at.code[0].value


def test_the_hunt_s_lines_tell_no_mistake_before_it_is_found(small_models: Path) -> None:
    """They hold the instrument to the right run, and to both once the answer is out."""
    at = apps.page(
        "change/museum", model="translation", room="Find it", order="0", instrument="The scale"
    )
    at.session_state["code"] = True
    at.run()
    before = at.code[0].value
    assert "MISTAKES[" not in before
    guesses = next(box for box in at.selectbox if str(box.key).startswith("guess_"))
    for option in guesses.options[:2]:
        next(box for box in at.selectbox if box.key == guesses.key).set_value(option)
        at.run()
        at.button(key="answer").click().run()
    assert not at.exception
    after = at.code[0].value
    assert "MISTAKES[" in after
    for lines in (before, after):
        assert "'The scale'" in lines
        run(lines, small_models)


MODELS = ("translation", "letters", "reviews", "bert", "gpt2", "t5")
PUBLISHED = ("bert", "gpt2", "t5")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def shelf(small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the project's small models lie; the published ones are offered beside them."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    return small_models


def kinds(model: str) -> dict[str, str]:
    """The kinds of stages that no model before this one has, each with the last such stage."""
    entries, seen = {entry.name: entry for entry in library.entries()}, set[str]()
    for name in MODELS:
        config = entries[name].config
        assert config is not None
        made = {stage.kind: stage.name for stage in stages_of(config)}
        if name == model:
            return {kind: stage for kind, stage in made.items() if kind not in seen}
        seen |= set(made)
    raise AssertionError(f"{model} is no model")


def test_the_lines_of_every_kind_of_stage_make_what_is_drawn(
    shelf: Path, published: Path, subtests: pytest.Subtests
) -> None:
    for model in MODELS:
        with subtests.test(model=model):
            for kind, stage in kinds(model).items():
                page = panel(
                    "look/walk",
                    published if model in PUBLISHED else shelf,
                    model=model,
                    stage=stage,
                )
                values = as_array(page.made["values"])
                if kind == "tokens":
                    assert [f"{value:,.0f}" for value in values] == page.column("its number")
                    continue
                rows, columns = page.header("walk_values")["places"]
                values = values.reshape(-1, values.shape[-1])
                few = values if len(values) == len(rows) else values[rows]
                page.made["drawn"] = few[:, columns]
                page.shows("walk_values", "drawn")

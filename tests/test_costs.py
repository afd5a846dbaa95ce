"""What a look costs, as far as no clock is needed: bytes sent, forward passes made."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from torch import nn

from explorer.app import context
from explorer.catalog import available_models
from models import Transformer
from tests import apps
from tests.benchmarks import drawings
from tests.calls import watched


def test_an_overview_of_144_heads_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """The whole page that a reader exports, with its code."""
    page, view = drawings.overview(drawings.weights(512), tmp_path)
    assert len(view.data) < page.size <= 250_000


@pytest.mark.usefixtures("small_models")
def test_a_run_scans_folders_and_makes_its_context_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()

    def count(name: str, *_: Any, **__: Any) -> None:
        counted[name] += 1

    pages = (context.PageContext, "__init__"), (st.Page, "__init__")
    for owner, name in ((available_models, "list_models"), *pages):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name), partial(count, name)))
    for path in ("attention/attention", "attention/heads", "generation/generation"):
        at = apps.page(path, model="letters")
        counted.clear()
        apps.run(at.selectbox(key="head").set_value(1))
        assert counted["list_models"] == 1, path
        assert counted["__init__"] == 1, "the context; the pages are kept"


@pytest.mark.usefixtures("small_models")
def test_only_a_text_that_is_new_is_passed_through_the_model() -> None:
    made: list[nn.Module] = []

    def note(module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(module, Transformer):
            made.append(module)

    with nn.modules.module.register_module_forward_hook(note):
        at = apps.page("attention/attention", model="letters")
        opened = len(made)
        assert opened <= 1, "the example that is looked at first is kept"
        for key in ("head", "layer"):
            apps.run(at.selectbox(key=key).set_value(1))
        assert len(made) == opened, "another head needs no other pass"
        typed = {"a hat at ten": 1, "the cat": 1, "ten hats": 2, "a hat at ten ": 3}
        for text, more in typed.items():
            apps.run(at.text_input(key="text").set_value(text))
            assert len(made) == opened + more, text

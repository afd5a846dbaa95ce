"""Path patching on the Circuits page: from a head, into a head, and where there is no path."""

from pathlib import Path

import numpy as np
import pytest

from explorer.app.session import KEY
from explorer.catalog.shipped import SHIPPED
from explorer.views.circuits import path_view
from tests import apps
from tests.views.drawing import pasted, run, sent
from tests.views.test_causal_tracing_view import ASKED, drawn

VIEW = {**ASKED, "circuit_view": "Path patching"}


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"layer": "0", "head": "1"}, slice(1, None)),
        ({"layer": "1", "head": "0", "path_end": path_view.INTO, "path_reads": "Keys"}, slice(1)),
    ],
)
def test_its_lines_make_its_numbers(asked: dict[str, str], rows: slice) -> None:
    at = apps.page("experiments/circuits", **VIEW, **asked)
    values = drawn(at, "path_ends")
    made, _ = run(pasted(at), SHIPPED)
    paths = made["paths"].numpy()
    np.testing.assert_allclose(values[: paths.shape[1], rows], paths.T, atol=5e-3)
    header, _ = sent(at, "path_ends")
    assert header["rows"] == ["0", "1"]  # it has no feed-forward layers


def test_the_strongest_path_of_an_induction_model_is_into_the_keys() -> None:
    """A previous-token head of the first layer writes what the keys of the second read."""
    asked = {**VIEW, "corrupted": "adcbeadcbeab", "layer": "1", "head": "1"}
    strongest = {}
    for reads in path_view.INPUT_NAMES.values():
        more = {"path_end": path_view.INTO, "path_reads": reads}
        at = apps.page("experiments/circuits", **asked, **more)
        strongest[reads] = float(np.nanmax(np.abs(drawn(at, "path_ends"))))
        assert "embedding → 1.1" in apps.said(at)
    assert max(strongest, key=strongest.__getitem__) == "Keys"


def test_too_many_paths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_view, "MOST", 1)
    at = apps.page("experiments/circuits", **VIEW)
    assert path_view.TOO_LONG in apps.said(at)


def test_a_model_without_edges_says_why(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    texts = {"text": "the cat [MASK]", "corrupted": "the dog [MASK]"}
    at = apps.page("experiments/circuits", **{**VIEW, "model": "bert", **texts})
    assert "there are no edges" in apps.said(at)
    assert "path_ends" not in apps.views(at)


def test_it_is_exported_as_it_is_drawn() -> None:
    for view, key in (("Path patching", "path_ends"), ("Causal tracing", "traced_values")):
        asked = {**VIEW, "circuit_view": view, "layer": "0", "head": "1"}
        at = apps.page("experiments/circuits", **asked)
        (figure,) = at.session_state[KEY].drawn[key].figures()
        np.testing.assert_allclose(figure.values, drawn(at, key), atol=5e-3)
        assert figure.title.startswith("induction · ")
        assert figure.unit == ("logits" if key == "path_ends" else "")

"""A finding on the Circuits page: downloaded with what was measured, opened with any model."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.__main__ import main
from explorer.app import limits
from explorer.catalog.shipped import SHIPPED
from explorer.circuits.finding import Finding, finding_from
from explorer.views.circuits import finding_panel
from tests import apps
from tests.apps import said
from tests.views.drawing import put_state

TEXTS = ["--clean", "abcdeabcdeab", "--corrupted", "adcbeadcbeab"]


def page(**address: str) -> AppTest:
    return apps.page("experiments/circuits", **{"model": "induction", **address})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the command line wrote of the induction model."""
    out = tmp_path_factory.mktemp("finding") / "finding.json"
    command = ["circuit", "--model", str(SHIPPED / "induction"), *TEXTS, "--out", str(out)]
    assert main(command) == 0
    return Path(out).read_bytes()


def opened(data: bytes, **address: str) -> AppTest:
    at = page(pair_source="A finding", **address)
    at.file_uploader(key="finding_file").upload("finding.json", data, "application/json").run()
    assert not at.exception
    return at


def downloaded(at: AppTest, monkeypatch: pytest.MonkeyPatch) -> Finding:
    """What the panel gives to whoever opens it now."""
    made: list[bytes] = []
    monkeypatch.setattr(
        finding_panel.st, "download_button", lambda *_, data, **__: made.append(data)
    )
    put_state(at, finding=True)
    return finding_from(made[-1])


def test_what_was_measured_by_now_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, written: bytes
) -> None:
    at = page(corrupted="adcbeadcbeab", circuit_view="Heads")
    half = downloaded(at, monkeypatch)
    assert all(head.exact is not None for head in half.heads)
    assert (half.faithfulness, half.minimum) == ((), None)
    assert "No circuits of every size yet: the view Circuit runs them." in said(at)
    at = page(corrupted="adcbeadcbeab", circuit_view="Circuit", patched_edges="40")
    whole = downloaded(at, monkeypatch)
    of_command = finding_from(written)
    assert whole.digest == of_command.digest
    assert whole.minimum == of_command.minimum
    for mine, its in zip(whole.edges, of_command.edges, strict=True):
        assert mine.title == its.title
        assert mine.exact == pytest.approx(its.exact, abs=1e-4)


def test_before_anything_is_estimated_the_panel_says_what_does_it() -> None:
    at = page(text="zyxzyxzy", circuit_view="Steering")
    put_state(at, finding=True)
    assert "Nothing is estimated by EAP-IG yet: the view Heads does it." in said(at)


def test_a_finding_is_opened_with_its_own_model_and_with_another(written: bytes) -> None:
    at = opened(written)
    assert "This finding is of these weights." in said(at)
    assert "there and here: 1.00." in said(at)
    at = opened(written, model="induction-learned")
    assert "This finding is of induction, which has other weights of the same shape" in said(at)
    assert "Pearson's r of the estimates of 4 heads, there and here: " in said(at)
    assert "Edges that restore 90 % of the difference: " in said(at)
    at = opened(written, model="induction-control")
    assert "which has another shape (2 layers of 2 heads" in said(at)
    at = opened(written, model="negation")
    assert "Pair 1 is no pair here. " in said(at)


def test_a_finding_is_read_once(written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(data: bytes) -> Finding:
        read.append(len(data))
        return finding_from(data)

    monkeypatch.setattr(finding_panel, "finding_from", counted)
    for data in (written + b" ", b"[]  "):
        read.clear()
        at = opened(data)
        at.run()
        assert read == [len(data)]


def test_what_is_no_finding_is_refused(written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "This file is no finding about a circuit" in said(opened(b"{}"))
    monkeypatch.setenv("EXPLORER_LIMIT_FINDING_BYTES", "1000")
    assert limits.FINDING_BYTES.refusal(len(written)) in said(opened(written))
    monkeypatch.setenv("EXPLORER_LIMIT_FINDING_BYTES", "1_000_000")
    monkeypatch.setenv("EXPLORER_LIMIT_PAIRS", "0")
    assert limits.PAIRS.refusal(1) in said(opened(written))


def test_a_metric_that_the_model_has_not_is_refused(written: bytes) -> None:
    of_classes = written.replace(b'"Logit difference"', b'"Class score"')
    assert (
        "The finding measures the class score, which this model has not (logit difference, "
        "probability, KL divergence, loss): choose another model."
    ) in said(opened(of_classes))

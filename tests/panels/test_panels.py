"""The code panel of every view: its lines run as pasted and give the page's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from explorer.analysis.heads import STATISTICS
from explorer.library import runs_root
from explorer.numbers import three
from explorer.runs.run import create
from explorer.runs.worker import advance
from tests import zoo
from tests.panels.pasting import Panel, panel

OURS = ("translation", "letters", "reviews", "reverse")
PUBLISHED = ("bert", "gpt2", "t5")
FEW = ("translation", "bert")
Check = Callable[[Panel], None]


def start(page: Panel) -> None:
    page.shows("start_head", "weights")


def tokens(page: Panel) -> None:
    assert page.made["ids"] == page.column("number")


def pair(page: Panel) -> None:
    made = page.made
    page.says(made["products"].sum(), made["weights"].max())
    rows = dict(zip(page.at.table[1].value["step"], page.at.table[1].value["value"], strict=True))
    number = int(str(page.at.selectbox(key="number").value))
    assert rows["all keys: what this head writes"] == three(float(made["written"][number]))
    mine = three(float(made["for_this_key"][number]))
    assert rows["this key, weight × value × W_O"] == mine


def lens(page: Panel) -> None:
    best = page.made["logits"].double().softmax(-1).max(-1).values
    column = page.column("1.")
    assert [cell.split()[-1] for cell in column] == [three(float(each)) for each in best]
    found = page.made["found"]
    drawn = torch.cat([*found.heads.values(), found.feed_forward[:, None]], 1)
    picture = torch.from_numpy(page.picture("made_of")).float()
    torch.testing.assert_close(picture, drawn, rtol=2e-4, atol=2e-4 * float(drawn.abs().max()))
    sums = dict(zip(page.column("what"), page.column("logits"), strict=True))
    assert sums["logit"] == three(found.total)
    assert sums["β of the norms, biases of W_O and the head"] == three(found.constant)
    page.says(found.logit)


def masks(page: Panel) -> None:
    page.shows("mask_both", "mask")
    page.shows("scores", "scores")
    page.shows("weights", "weights")


def student(page: Panel) -> None:
    page.shows("mask_both", "mask")


def finder(page: Panel) -> None:
    layer = page.at.session_state["layer"]
    seen = page.picture("heads_table")[layer]
    title = page.at.selectbox(key="metric").value
    name = next(each.name for each in STATISTICS.values() if each.title == title)
    torch.testing.assert_close(
        torch.from_numpy(seen), page.made["found"][name], rtol=2e-4, atol=1e-4, equal_nan=True
    )


def likeness(page: Panel) -> None:
    state = page.at.session_state
    made = page.made["likeness"]
    row = page.picture("likeness")[state["layer"] * page.made["every"][0].shape[0] + state["head"]]
    torch.testing.assert_close(torch.from_numpy(row).float(), made, rtol=2e-4, atol=2e-4)


def rollout(page: Panel) -> None:
    page.shows("rollout", "shares")


def flow(page: Panel) -> None:
    seen = torch.from_numpy(page.picture("flow"))
    both = torch.stack([page.made["flow"].double(), page.made["share"].double()])
    torch.testing.assert_close(seen[:2], both, rtol=2e-4, atol=1.01e-4)


def writing(page: Panel) -> None:
    steps = int(page.at.slider(key="written").max)
    page.at.session_state["written"] = steps
    page.at.run()
    assert not page.at.exception
    assert page.header("written_tokens")["ids"][-steps:] == page.made["written"]


def stage(page: Panel) -> None:
    """Of a vector the first window of its numbers is drawn."""
    wide = page.picture("walk_values").shape[1]
    page.made["values"] = page.made["values"][:, :wide]
    page.shows("walk_values", "values")


def training(page: Panel) -> None:
    """The losses of a run that a worker made, as the form asked for it."""
    run = create(runs_root(), page.at.session_state["_spec_asked_for"])
    for _ in advance(run.folder):
        pass
    found = [loss for _, loss in run.metrics().update().losses()]
    assert len(found) == len(page.made["losses"]) == 4
    assert found == pytest.approx(page.made["losses"], rel=1e-4)


def weights(page: Panel) -> None:
    weight = page.made["weight"]
    page.says(weight.mean(), page.made["rms"], weight.norm(), weight.min(), weight.max())


def norms(page: Panel) -> None:
    rms = dict(zip(page.column("tensor"), page.column("rms"), strict=True))
    assert rms == pytest.approx(page.made["rms"], rel=1e-5)


def spectrum(page: Panel) -> None:
    values = page.made["values"]
    page.says(values[0], values[-1], page.made["end"])


def statistics(page: Panel) -> None:
    state = page.at.session_state
    page.says(page.made["found"]["entropy"][state["head"]])


def ledger(page: Panel) -> None:
    assert f"**{page.made['node'].count:,} parameters**" in page.words()


def doctor(page: Panel) -> None:
    for finding in page.made["findings"]:
        assert finding.sentence in page.words()


def every_head(page: Panel) -> None:
    layer = page.at.session_state["layer"]
    seen = torch.from_numpy(page.picture("heads_off")[layer])
    torch.testing.assert_close(seen, page.made["found"], rtol=1e-3, atol=1e-4)


def nothing(page: Panel) -> None:
    """That the lines run is all: what they make is compared elsewhere."""


VIEWS: dict[str, tuple[str, dict[str, str], Check, tuple[str, ...]]] = {
    "At a glance": ("look/start", {}, start, (*OURS, *PUBLISHED)),
    "Tokens": ("look/tokens", {}, tokens, (*OURS, *PUBLISHED)),
    "Query and key": ("look/pairs", {}, pair, (*OURS, *PUBLISHED)),
    "Logit lens": ("look/lens", {}, lens, (*OURS, *PUBLISHED)),
    "Masks": ("look/masks", {"example": "Your sentence"}, masks, (*OURS, *PUBLISHED)),
    "Masks, a batch": ("look/masks", {"example": "A padded batch"}, masks, (*OURS, "bert", "t5")),
    "Masks, a student": ("look/masks", {"example": "I am a student"}, student, ("letters",)),
    "Heads, finder": ("look/heads", {"side": "Finder"}, finder, (*OURS, *PUBLISHED)),
    "Heads, likeness": ("look/heads", {"side": "Likeness"}, likeness, (*OURS, *PUBLISHED)),
    "Heads, rollout": (
        "look/heads",
        {"side": "Rollout", "part": "Decoder"},
        rollout,
        (*OURS, *PUBLISHED),
    ),
    "Heads, flow": ("look/heads", {"side": "Flow", "part": "Decoder"}, flow, (*OURS, *PUBLISHED)),
    "Writing": ("look/writing", {}, writing, ("translation", "letters", "gpt2", "t5")),
    "The whole pass": (
        "look/walk",
        {"stage": "decoder.0.self_attn.v"},
        stage,
        ("letters", "gpt2"),
    ),
    "The whole pass, encoder": (
        "look/walk",
        {"stage": "encoder.0.self_attn.v"},
        stage,
        ("translation", "bert"),
    ),
    "The whole pass, between": (
        "look/walk",
        {"stage": "decoder.0.self_attn.norm"},
        stage,
        ("letters", "gpt2"),
    ),
    "Train": ("train/train", {"task": "reverse"}, training, ("letters",)),
    "Ledger": ("models/checkpoints", {"show": "Ledger"}, ledger, FEW),
    "Ledger of a preset": ("models/checkpoints", {"ledger": "paper"}, ledger, ("letters",)),
    "Weights": ("models/checkpoints", {"show": "Weights"}, weights, FEW),
    "Norms": ("models/checkpoints", {"show": "Norms"}, norms, FEW),
    "Spectra": ("models/checkpoints", {"show": "Spectra"}, spectrum, FEW),
    "Heads": ("models/checkpoints", {"show": "Heads"}, statistics, (*OURS, *PUBLISHED)),
    "Doctor": ("models/checkpoints", {"show": "Doctor"}, doctor, FEW),
    "Every head": ("change/edits", {"look": "Every head"}, every_head, (*OURS, *PUBLISHED)),
    "Faithfulness": ("change/edits", {"look": "Faithfulness"}, nothing, (*OURS, *PUBLISHED)),
}
STATE = {"Train": {"reverse_steps": 4, "reverse_batch_size": 2}}
CASES = [(view, model) for view, (_, _, _, models) in VIEWS.items() for model in models]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.mark.parametrize(("view", "model"), CASES)
def test_the_lines_of_a_view_make_its_numbers(
    view: str,
    model: str,
    small_models: Path,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    path, address, check, _ = VIEWS[view]
    folder = published if model in PUBLISHED else small_models
    check(panel(path, folder, STATE.get(view, {}), model=model, **address))


@pytest.mark.parametrize("address", [{"decoder_token": "1"}, {}])
def test_the_lines_of_too_many_shares_make_those_of_the_chosen_token(
    address: dict[str, str],
    small_models: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("explorer.analysis.walk_values.MOST_LOGITS", 10)
    page = panel("look/walk", small_models, model="letters", stage="probabilities", **address)
    _, columns = page.header("walk_values")["places"]
    assert len(page.made["values"]) == 1
    page.made["values"] = page.made["values"][:, columns]
    page.shows("walk_values", "values")

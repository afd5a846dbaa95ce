"""What the page Compare shows: two maps, their difference, and how far they are apart."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote_plus

import torch
from torch import Tensor

from explorer.library import opened_from
from explorer.runs.run import Run
from models import load_checkpoint, trace
from models.interventions import Scale
from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, said
from tests.browser.visiting import Visitor
from tests.source import ROOT

OTHER = "To have, or not to have"
ASKS_SENTENCE = f"&other_text={quote_plus(OTHER)}"
ASKS_EDITS = "&edits=1.1~h.d.0.1.z"
OFF = Scale("decoder.0.self_attn.head_out", 0.0, 1)
PAIR, LETTERS = ("induction", "induction-control"), "abcdabcd"
ASKS_MODEL = f"&model={PAIR[0]}&layer=0&head=1&text={LETTERS}&other_model={PAIR[1]}"
WORD, STEP = "cab", 5


def _maps(visitor: Visitor, first: Tensor, second: Tensor) -> list[Claim]:
    bits = said(visitor, r"Their rows are ([\d.]+) bits apart")[0]
    last = len(first) - 1
    return [
        Claim("bits apart", bits, core.apart(first, second)),
        a_cell(visitor, "map_first", first, last, 0),
        a_cell(visitor, "map_second", second, last - 1, 2),
        a_cell(visitor, "map_difference", second - first, last, last - 1),
    ]


def head(visitor: Visitor) -> list[Claim]:
    return _maps(visitor, core.weights(), core.weights(1, 3))


def sentence(visitor: Visitor) -> list[Claim]:
    """The same head over another sentence of as many tokens."""
    ids = torch.tensor([[token.id for token in core.tokenizer().encode(OTHER)]])
    assert ids.shape == core.ids().shape
    other = core.scores_of(trace(core.model(), ids))
    return _maps(visitor, core.weights(), core.looking_back(other))


def edits(visitor: Visitor) -> list[Claim]:
    """A head below is taken away, which moves the queries and keys of the chosen one."""
    return _maps(visitor, core.weights(), core.looking_back(core.scores_of(core.seen(OFF))))


def model(visitor: Visitor) -> list[Claim]:
    folders = [ROOT / "models" / "checkpoints" / name for name in PAIR]
    first, second = (_of(folder, LETTERS, "decoder.0.self_attn", 1) for folder in folders)
    return _maps(visitor, first, second)


def asks_step(run: Run) -> str:
    return f"model={run.name}&part=Encoder&layer=0&head=0&text={WORD}&other_step={STEP}"


def step(visitor: Visitor, run: Run) -> list[Claim]:
    """The finished model beside one of its snapshots."""
    folders = run.folder / "checkpoint", dict(run.snapshots())[STEP]
    first, second = (_of(folder, WORD, "encoder.0.self_attn", 0) for folder in folders)
    return _maps(visitor, first, second)


def _of(folder: Path, text: str, site: str, head: int) -> Tensor:
    """The weights of a head over a text that has no answer, or whose answer does not matter."""
    model = load_checkpoint(folder).model
    ids = torch.tensor([[t.id for t in opened_from(folder, folder.name).tokenizer.encode(text)]])
    seen = trace(model, *[ids] * len(model.config.stacks))
    scores = core.scores_of(seen, site, head)
    return core.looking_back(scores) if site.startswith("decoder") else scores.softmax(-1)

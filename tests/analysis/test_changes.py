"""What a change does, in numbers: against torch, and against a pass of the core."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from explorer import library
from explorer.analysis import changes
from explorer.answers import first_place
from explorer.edits import AblateAttention, AblateHead
from explorer.library import Opened
from explorer.passing import ids_of
from explorer.reading import Reading, read
from explorer.rereading import edited
from tests.shelf import NAMES

close = torch.testing.assert_close
D = "decoder.self_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def opened(name: str) -> tuple[Opened, Reading]:
    found = library.open_model(name)
    return found, read(found, found.example)


def logits(reading: Reading) -> torch.Tensor:
    """Read position by position."""
    places = range(len(changes.tokens_read(reading)))
    return torch.stack([changes.logits(reading, place) for place in places])


def test_the_loss_is_the_cross_entropy_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", 2)
    found, reading = opened("letters")
    again = edited(found, reading, (AblateHead(D, 0, 0),)).reading
    whole = changes.over_text(reading, again)
    close(whole.kl, changes.kl(logits(reading), logits(again)))
    loss = whole.loss
    assert loss is not None
    ids = ids_of([reading.target])[0]
    for value, seen in ((loss.before, reading), (loss.after, again)):
        expected = F.cross_entropy(logits(seen)[:-1].double(), ids[1:])
        assert abs(value - float(expected)) < 1e-6
    assert loss.tokens == len(ids) - 1
    _, its = opened("reverse")
    assert changes.over_text(its, its).loss is None, "it foretells nothing"


def test_kl_is_that_of_torch_and_never_below_zero() -> None:
    generator = torch.Generator().manual_seed(0)
    p, q = torch.randn(2, 50, 9, generator=generator)
    expected = F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="none", log_target=True)
    close(changes.kl(p, q).float(), expected.sum(-1))
    assert (changes.kl(p, p) == 0).all()


def test_options_are_the_likeliest_of_both() -> None:
    for name in NAMES:
        found, reading = opened(name)
        again = edited(found, reading, (AblateAttention(reading.parts[-1].name, 0),)).reading
        place = first_place(found, changes.tokens_read(reading))
        mine, theirs = (changes.logits(each, place) for each in (reading, again))
        told = changes.options(mine, theirs, most=3)
        assert {int(mine.argmax()), int(theirs.argmax())} <= {each.index for each in told}, name
        before = [each.before for each in told]
        assert before == sorted(before, reverse=True), name

"""What a change does, in numbers: against torch, and against a pass of the core."""

import pytest
import torch
import torch.nn.functional as F

from explorer.analysis import output_change
from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.inference.answers import first_place
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.output_tokens import last_stack_tokens, predicted_ids
from explorer.interventions.edits import AblateAttention, AblateHead
from tests.shelf import NAMES

close = torch.testing.assert_close
D = "decoder.self_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def opened(name: str) -> tuple[Opened, ForwardPass]:
    found = opened_model.open_model(name)
    return found, run_text(found, found.example)


def logits(forward: ForwardPass) -> torch.Tensor:
    """Read position by position."""
    places = range(len(last_stack_tokens(forward)))
    return torch.stack([output_change.logits_at(forward.trace, place) for place in places])


def over_text(before: ForwardPass, after: ForwardPass) -> output_change.ChangeOverText:
    ids = predicted_ids(before), predicted_ids(after)
    return output_change.over_text(before.trace, after.trace, ids)


def test_the_loss_is_the_cross_entropy_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_change, "AT_ONCE", 2)
    found, forward = opened("letters")
    again = run_edited(found, forward, (AblateHead(D, 0, 0),)).forward
    whole = over_text(forward, again)
    close(whole.kl, output_change.kl(logits(forward), logits(again)))
    loss = whole.loss
    assert loss is not None
    ids = ids_of([forward.target])[0]
    for value, seen in zip(loss, (forward, again), strict=True):
        expected = F.cross_entropy(logits(seen)[:-1].double(), ids[1:])
        assert abs(value - float(expected)) < 1e-6
    _, its = opened("reverse")
    assert over_text(its, its).loss is None, "it predicts no next token"


def test_kl_is_that_of_torch_and_never_below_zero() -> None:
    generator = torch.Generator().manual_seed(0)
    p, q = torch.randn(2, 50, 9, generator=generator)
    expected = F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="none", log_target=True)
    close(output_change.kl(p, q).float(), expected.sum(-1))
    assert (output_change.kl(p, p) == 0).all()


def test_options_are_the_likeliest_of_both() -> None:
    for name in NAMES:
        found, forward = opened(name)
        again = run_edited(found, forward, (AblateAttention(forward.parts[-1].name, 0),)).forward
        place = first_place(found, last_stack_tokens(forward))
        mine, theirs = (output_change.logits_at(each.trace, place) for each in (forward, again))
        listed = output_change.likeliest(mine, theirs, most=3)
        assert {int(mine.argmax()), int(theirs.argmax())} <= set(listed), name
        before = mine[listed].tolist()
        assert before == sorted(before, reverse=True), name

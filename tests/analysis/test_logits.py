"""What makes a logit, layer by layer and part by part, and what a change does to all of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from explorer.analysis import output_change
from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.analysis.logit_lens import lens_logits, ranks_by_layer
from explorer.analysis.output_change import logits_at
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.inference.answers import first_place
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.inference.model_inputs import ids_of
from explorer.interventions.edits import AblateAttention, AblateHead
from models import trace
from tests.analysis.conftest import TEXT, inputs_of
from tests.closeness import assert_close_to as close
from tests.inference.test_edited_pass import D, logits, opened
from tests.tiny import NAMES, saved_and_opened


def all_of(found: ForwardPass) -> list[Contributions]:
    """At the first, a middle and the last position, of the likeliest and another option."""
    made = []
    last = len(found.last_stack_tokens) - 1
    for place in {0, last // 2, last}:
        for option in (int(logits_at(found.trace, place).argmax()), 1):
            made.append(contributions(found, place, option))
            again = float(logits_at(found.trace, place)[option])
            assert made[-1].logit == pytest.approx(again, rel=1e-6, abs=1e-6)
    return made


def test_the_lens_ends_in_the_answer_and_the_parts_sum_to_the_logit(found: ForwardPass) -> None:
    place = len(found.last_stack_tokens) - 1
    lens = lens_logits(found.trace, place)
    whole = trace(found.trace.model, *inputs_of(found), sites=("logits",))["logits"][0]
    close(lens[-1], whole if whole.dim() == 1 else whole[place])
    assert len(lens) == 1 + (found.config.n_layers if found.target else found.config.encoder_layers)
    for one in all_of(found):
        assert one.difference < 1e-6 * max(1.0, abs(one.logit))
        assert {name: tuple(values.shape) for name, values in one.heads.items()} == {
            part.name: (part.layers, part.heads)
            for part in found.parts
            if found.config.kind == part.name.split(".")[0] or part.name.startswith("decoder")
        }


def test_they_sum_in_single_precision_too(shipped_models: None) -> None:
    for name in ("translation", "shakespeare", "reviews"):
        opened = opened_model.open_model(name)
        for one in all_of(run_text(opened, opened.example)):
            assert one.difference < 1e-5 * max(1.0, abs(one.logit)), name


def test_the_logit_is_the_one_that_the_pass_gave(found: ForwardPass) -> None:
    """What the pass put out is changed by hand: the sum of the parts no longer is the logit."""
    last = len(found.last_stack_tokens) - 1
    before, earlier = contributions(found, last, 1), contributions(found, 0, 1)
    found.trace.output[0] += 1.5
    after = contributions(found, last, 1)
    assert after.in_pass
    assert after.logit == pytest.approx(before.logit + 1.5)
    assert after.difference == pytest.approx(1.5)
    if (found.config.kind, found.config.head) == ("decoder", "language-model"):  # one place
        assert found.trace.output.shape[1] == 1
        assert not earlier.in_pass
        assert contributions(found, 0, 1).logit == earlier.logit


def test_a_head_that_is_cut_is_missed_by_what_it_gave(tmp_path: Path) -> None:
    """In a model without norms, nothing else changes when a head of the last layer is silent."""
    changes: dict[str, Any] = {"d_ff": 0, "norm_position": "pre", "final_norm": False}
    opened = saved_and_opened(tmp_path, "bare", shaken_by=0.4, dtype=torch.float64, **changes)
    found = forward_pass.run_batch_uncached(opened, (TEXT,))[0]
    one = contributions(found, 3, 2)
    block: Any = opened.model.last_stack.blocks[0]
    with torch.no_grad():
        block.self_attn.o_proj.weight[:, : block.self_attn.d_head] = 0
    without = forward_pass.run_batch_uncached(opened, (TEXT,))[0]
    lost = float(logits_at(found.trace, 3)[2] - logits_at(without.trace, 3)[2])
    assert float(one.heads["decoder.self_attn"][0, 0]) == pytest.approx(lost, abs=1e-9)


SMALL = pytest.mark.usefixtures("small_models")


def over_text(before: ForwardPass, after: ForwardPass) -> output_change.ChangeOverText:
    ids = before.predicted_ids, after.predicted_ids
    return output_change.over_text(before.trace, after.trace, ids)


@SMALL
def test_the_loss_is_the_cross_entropy_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_change, "AT_ONCE", 2)
    found, forward = opened("letters")
    again = run_edited(found, forward, (AblateHead(D, 0, 0),)).forward
    whole = over_text(forward, again)
    close(whole.kl, output_change.kl(logits(found, forward), logits(found, again)), 1e-5)
    loss = whole.loss
    assert loss is not None
    ids = ids_of([forward.target])[0]
    for value, seen in zip(loss, (forward, again), strict=True):
        by_torch = F.cross_entropy(logits(found, seen)[:-1].double(), ids[1:])
        assert abs(value - float(by_torch)) < 1e-6
    _, its = opened("reverse")
    assert over_text(its, its).loss is None, "it predicts no next token"


def test_kl_is_that_of_torch_and_ranks_count_from_one() -> None:
    p, q = torch.randn(2, 50, 9, generator=torch.Generator().manual_seed(0))
    expected = F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="none", log_target=True)
    close(output_change.kl(p, q).float(), expected.sum(-1))
    assert (output_change.kl(p, p) == 0).all()
    assert ranks_by_layer(torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]]), 2) == [2, 2]
    assert ranks_by_layer(torch.tensor([[1.0, 1.0]]), 0) == [1], "equals share the better place"


@SMALL
def test_options_are_the_likeliest_of_both() -> None:
    for name in NAMES:
        found, forward = opened(name)
        again = run_edited(found, forward, (AblateAttention(forward.parts[-1].name, 0),)).forward
        place = first_place(found, forward.last_stack_tokens)
        mine, theirs = (output_change.logits_at(each.trace, place) for each in (forward, again))
        listed = output_change.likeliest(mine, theirs, most=3)
        assert {int(mine.argmax()), int(theirs.argmax())} <= set(listed), name
        before = mine[listed].tolist()
        assert before == sorted(before, reverse=True), name

"""Direct contributions sum to the logit, and each is what the pass loses without it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.analysis.output_change import logits_at
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.output_tokens import last_stack_tokens
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests.analysis.conftest import TEXT
from tests.models.building import shake
from tests.shelf import WORDS, put


def all_of(found: ForwardPass) -> list[Contributions]:
    """At the first, a middle and the last position, of the likeliest and another option."""
    made = []
    last = len(last_stack_tokens(found)) - 1
    for place in {0, last // 2, last}:
        for option in (int(logits_at(found.trace, place).argmax()), 1):
            made.append(contributions(found, place, option))
            again = float(logits_at(found.trace, place)[option])
            assert made[-1].logit == pytest.approx(again, rel=1e-6, abs=1e-6)
    return made


def test_they_sum_to_the_logit(found: ForwardPass) -> None:
    for one in all_of(found):
        assert one.difference < 1e-6 * max(1.0, abs(one.logit))
        assert {name: tuple(values.shape) for name, values in one.heads.items()} == {
            part.name: (part.layers, part.heads)
            for part in found.parts
            if found.config.kind == part.name.split(".")[0] or part.name.startswith("decoder")
        }


def test_the_logit_is_the_one_that_the_pass_gave(found: ForwardPass) -> None:
    """What the pass put out is changed by hand: the sum of the parts no longer is the logit."""
    last = len(last_stack_tokens(found)) - 1
    before, earlier = contributions(found, last, 1), contributions(found, 0, 1)
    found.trace.output[0] += 1.5
    after = contributions(found, last, 1)
    assert after.in_pass
    assert after.logit == pytest.approx(before.logit + 1.5)
    assert after.difference == pytest.approx(1.5)
    if found.config.kind == "decoder":  # only the last place is scored
        assert found.trace.output.shape[1] == 1
        assert not earlier.in_pass
        assert contributions(found, 0, 1).logit == earlier.logit


def test_of_published_and_trained_models_too(published: Path) -> None:
    opened = [opened_model.open_model(name) for name in ("translation", "reviews", "induction")]
    opened += [opened_model.opened_from(published / name, name) for name in ("gpt2", "t5")]
    texts = {"gpt2": "5 17 3", "t5": "the cat was good"}
    for each in opened:
        for one in all_of(forward_pass.run_text(each, texts.get(each.name, each.example))):
            assert one.difference < 1e-5 * max(1.0, abs(one.logit)), each.name


def test_a_head_that_is_cut_is_missed_by_what_it_gave(tmp_path: Path) -> None:
    """In a model without norms, nothing else changes when a head of the last layer is silent."""
    changes: dict[str, Any] = {"kind": "decoder", "n_layers": 1, "d_ff": 0, "norm_position": "pre"}
    put(tmp_path, "bare", word_tokenizer(WORDS, DECODER), "the cat", final_norm=False, **changes)
    opened = opened_model.opened_from(tmp_path / "bare", "bare")
    shake(opened.model.double(), by=0.4)
    found = forward_pass.run_batch_uncached(opened, (TEXT,))[0]
    one = contributions(found, 3, 2)
    block: Any = opened.model.last_stack.blocks[0]
    with torch.no_grad():
        block.self_attn.o_proj.weight[:, : block.self_attn.d_head] = 0
    without = forward_pass.run_batch_uncached(opened, (TEXT,))[0]
    lost = float(logits_at(found.trace, 3)[2] - logits_at(without.trace, 3)[2])
    assert float(one.heads["decoder.self_attn"][0, 0]) == pytest.approx(lost, abs=1e-9)

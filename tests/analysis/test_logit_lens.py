"""The logit lens ends in what the model answers, and begins with what it was given."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.logit_lens import lens_logits, ranks_by_layer
from explorer.catalog import opened_model
from explorer.inference.answers import first_place
from explorer.inference.forward_pass import run_text
from explorer.inference.output_tokens import last_stack_tokens
from models import trace
from tests.analysis.conftest import inputs_of

SHIPPED = ("translation", "shakespeare", "negation", "reviews", "induction")
PUBLISHED = ("bert", "gpt2", "t5")


def test_the_last_row_is_the_answer(published: Path, subtests: pytest.Subtests) -> None:
    texts = {"bert": "the cat was good", "gpt2": "5 17 3", "t5": "the cat was good"}
    for name in (*SHIPPED, *PUBLISHED):
        with subtests.test(name=name):
            if name in PUBLISHED:
                opened = opened_model.opened_from(published / name, name)
            else:
                opened = opened_model.open_model(name)
            forward = run_text(opened, texts.get(name, opened.example))
            place = first_place(opened, last_stack_tokens(forward))
            found = lens_logits(forward.trace, place)
            alone = opened.config.encoder_layers if not forward.target else opened.config.n_layers
            assert len(found) == alone + 1
            whole = trace(opened.model, *inputs_of(forward), sites=("logits",))["logits"][0]
            expected = whole if whole.dim() == 1 else whole[place]
            torch.testing.assert_close(found[-1], expected, rtol=1e-4, atol=1e-4)
            assert not torch.allclose(found[0], found[-1], atol=1e-3)


def test_ranks_count_from_one() -> None:
    assert ranks_by_layer(torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]]), 2) == [2, 2]
    assert ranks_by_layer(torch.tensor([[1.0, 1.0]]), 0) == [1], "equals share the better place"

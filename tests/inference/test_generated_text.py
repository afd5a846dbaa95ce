"""What is written: each step's map is that of a pass of its own, also with edits."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.catalog import available_models, opened_model
from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import Opened
from explorer.inference import edited_generation
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.generated_text import MAX_GENERATED, can_generate, generate_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import forget
from explorer.interventions.edits import (
    AblateHead,
    AblateMlp,
    CutEdge,
    HideKey,
    Intervention,
    MaskCell,
    PresetMask,
    ReplaceToken,
)
from models import trace
from models.config import GenerationConfig

E, D, C = "encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"


def published_one(published: Path, name: str) -> Opened:
    return opened_model.open_entry(available_models.brought_model(published / name))


def test_every_step_is_a_pass_of_its_own_and_writes_the_likeliest() -> None:
    for name in ("translation", "shakespeare"):
        opened = opened_model.open_model(name)
        assert can_generate(opened)
        grown = generate_text(opened, opened.example, 6)
        forward = grown.forward
        assert 0 < grown.steps <= 6
        assert [int(best) for best in grown.ids[:, 0]] == [token.id for token in grown.tokens]
        assert grown.guesses(0, opened.tokenizer.label)[0].label == grown.tokens[0].label
        for step in (1, grown.steps):
            for part in forward.parts:
                rows, columns = grown.size(part.name, step)
                assert rows == step or part.name != "decoder.cross_attn"
                stack = part.name.split(".")[0]
                so_far = forward.target[:rows] if stack == "decoder" else forward.target[:1]
                inputs = [ids_of([forward.source])] if forward.source else []
                alone = trace(opened.model, *inputs, ids_of([so_far]))
                seen = grown.weights(part.name, part.layers - 1, part.heads - 1, step)
                own = alone.weights(site(part.name, part.layers - 1), head=part.heads - 1)[0]
                torch.testing.assert_close(seen[:rows, :columns], own, rtol=1e-4, atol=1e-5)
                assert seen[rows:].isnan().all()
                assert seen[:, columns:].isnan().all()


def test_who_only_reads_says_so_and_who_is_full_writes_no_more(published: Path) -> None:
    bert = published_one(published, "bert")
    assert not can_generate(bert)
    with pytest.raises(ForwardPassError, match="does not generate text: choose one"):
        generate_text(bert, bert.example, 3)
    gpt2 = published_one(published, "gpt2")
    with pytest.raises(ForwardPassError, match="This text fills all 32 positions of this model"):
        generate_text(gpt2, "5 " * 32, MAX_GENERATED)
    assert 0 < generate_text(gpt2, "5 17", 10_000).steps <= MAX_GENERATED


@pytest.mark.usefixtures("small_models")
def test_what_may_not_be_written_is_not_considered() -> None:
    for name in ("letters", "translation"):
        opened = opened_model.open_model(name)
        likeliest = int(generate_text(opened, opened.example, 3).ids[-1, 0])
        config = opened.config.replace(generation=GenerationConfig((), 5, (likeliest,)))
        model = copy.deepcopy(opened.model)
        model.config = config
        grown = generate_text(replace(opened, config=config, model=model), opened.example, 3)
        assert [int(best) for best in grown.ids[:, 0]] == [token.id for token in grown.tokens]
        for step in range(grown.steps):
            guesses = grown.guesses(step, str)
            assert str(likeliest) not in [guess.label for guess in guesses]
            assert sum(guess.probability for guess in guesses) <= 1 + 1e-5
        if opened.config.kind == "encoder-decoder":
            assert [guess.label for guess in grown.guesses(0, str)] == ["5"]


NOTHING: tuple[Intervention, ...] = (
    PresetMask(D, None, "causal"),
    PresetMask(C, None, "none"),
    MaskCell(D, None, 0, 0, True),
)
SOMETHING: tuple[Intervention, ...] = (
    AblateHead(E, 0, 0),
    AblateHead(C, 0, 1),
    AblateMlp(D, 0),
    CutEdge(D, 0, None, 1, 0),
    ReplaceToken(E, 0, 7),
    ReplaceToken(D, 1, 7),
    HideKey(C, None, 0),
    HideKey(D, 0, 3),
    PresetMask(D, 0, "window", 2),
    PresetMask(C, None, "padding", 1),
)


@pytest.mark.parametrize("name", ["translation", "t5"])
def test_what_is_written_with_edits_is_what_the_pass_over_it_expects(
    name: str, published: Path, subtests: pytest.Subtests
) -> None:
    """Passed whole over what it wrote, with the same edits, every step expects what it wrote."""
    model = published_one(published, name) if name == "t5" else opened_model.open_model(name)
    forward = run_text(model, "hello world" if name == "t5" else model.example)
    for edit in (*NOTHING, *SOMETHING):
        with subtests.test(edit=edit):
            passed = run_edited(model, forward, (edit,))
            written = edited_generation.generate_edited(model, passed)
            if edit in NOTHING:
                assert written == forward.written
                assert edited_generation.edited_answer(model, passed) == forward.answer
            target = (forward.target[0], *written[:-1])
            whole = dataclasses.replace(forward, target=target, written=written)
            forget(model)  # the same text, passed over another answer
            again = run_edited(model, whole, (edit,))
            forget(model)
            assert passed.applied == again.applied == (edit,)
            expected = again.forward.trace.output[0].argmax(-1).tolist()
            assert [token.id for token in written] == expected

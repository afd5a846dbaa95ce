"""What is generated with edits is what a pass over it expects."""

import dataclasses
from pathlib import Path

import pytest

from explorer.catalog import available_models, opened_model
from explorer.inference import edited_generation
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import run_text
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
    Steer,
)

E, D, C = "encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"


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
    Steer(E, 0, None, 2.0, ("a black cat", "a red dog runs")),
    Steer(D, 0, None, -3.0, ("a black cat", "a red dog runs")),
    Steer(C, 0, 1, 4.0, ("a black cat",)),
)


@pytest.mark.parametrize("name", ["translation", "t5"])
def test_what_is_written_with_edits_is_what_the_pass_over_it_expects(
    name: str, published: Path, subtests: pytest.Subtests
) -> None:
    """Passed whole over what it wrote, with the same edits, every step expects what it wrote."""
    model = opened_model.open_model("translation")
    if name == "t5":
        model = opened_model.open_entry(available_models.brought_model(published / name))
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

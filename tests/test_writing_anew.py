"""What an encoder-decoder writes with edits is what its pass with the same edits expects."""

from __future__ import annotations

import dataclasses

import pytest

from explorer import library, writing_anew
from explorer.edits import (
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    MaskCell,
    PresetMask,
    ReplaceToken,
)
from explorer.kept import forget
from explorer.library import Opened
from explorer.reading import Reading, read
from explorer.rereading import edited
from tests import zoo

E, D, C = "encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"
NOTHING: dict[str, Edit] = {
    "as it is": PresetMask(D, None, "causal"),
    "everybody": PresetMask(C, None, "none"),
    "a wide window": PresetMask(D, 0, "window", 99),
    "far away": MaskCell(D, None, 0, 0, True),
}
SOMETHING: dict[str, Edit] = {
    "encoder": AblateHead(E, 0, 0),
    "decoder": AblateHead(D, 0, 0),
    "cross": AblateHead(C, 0, 1),
    "feed-forward": AblateMlp(D, 0),
    "edge": CutEdge(D, 0, None, 1, 0),
    "source": ReplaceToken(E, 0, 7),
    "written": ReplaceToken(D, 1, 7),
    "key of the source": HideKey(C, None, 0),
    "last written key": HideKey(D, 0, 3),
    "a short window": PresetMask(D, 0, "window", 2),
    "padding": PresetMask(C, None, "padding", 1),
}


@pytest.fixture(scope="module", params=["ours", "published"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    if request.param == "ours":
        return library.open_model("translation")
    return library.opened_from(zoo.t5(tmp_path_factory.mktemp("t5")), "t5")


def reading_of(model: Opened) -> Reading:
    return read(model, model.example if model.name != "t5" else "hello world")


def test_an_edit_that_changes_nothing_writes_the_same(
    model: Opened, subtests: pytest.Subtests
) -> None:
    for edit in NOTHING.values():
        with subtests.test(edit=edit):
            reading = reading_of(model)
            passed = edited(model, reading, (edit,))
            assert passed.made == (edit,)
            assert writing_anew.written_anew(model, passed) == reading.written
            assert writing_anew.answer(model, passed) == reading.answer


def test_it_writes_what_the_pass_over_the_new_answer_expects(
    model: Opened, subtests: pytest.Subtests
) -> None:
    """Passed whole over what it wrote, with the same edits, every step expects what it wrote."""
    for edit in SOMETHING.values():
        with subtests.test(edit=edit):
            reading = reading_of(model)
            passed = edited(model, reading, (edit,))
            assert passed.made == (edit,)
            written = writing_anew.written_anew(model, passed)
            target = (reading.target[0], *written[:-1])
            whole = dataclasses.replace(reading, target=target, written=written)
            forget(model)  # the same text, passed over another answer
            again = edited(model, whole, (edit,))
            forget(model)
            assert again.made == (edit,)
            expected = again.reading.trace.output[0].argmax(-1).tolist()
            assert [token.id for token in written] == expected

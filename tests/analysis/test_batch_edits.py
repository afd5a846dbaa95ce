"""A batch of edits is one edit each."""

import pytest
import torch

from explorer.analysis.batch_edits import AblateHeads, AddByRow, KeepCells, PatchHeads
from models.interventions import Edit, EditError, Replace, Scale, SetCell
from models.trace import trace
from tests.closeness import assert_close_to as close
from tests.models.test_interventions import (
    IDS,
    LAST,
    MODEL,
    OTHER,
    OUT,
    PLAIN,
    STREAM,
    WEIGHTS,
    edited,
)

MISFITS: dict[str, Edit] = {
    "is not a batch of 3 over heads": AblateHeads(OUT, (0, 1, 2)),
    "is not a batch of 1 over \\(3, 6, 5\\)": PatchHeads(OUT, (0,), torch.ones(3, 6, 5)),
    "\\(3, 6, 12\\) cannot be added to": AddByRow(STREAM, torch.ones(3, 6, 12)),
    "\\(2, 5, 12\\) cannot be added to": AddByRow(STREAM, torch.ones(2, 5, 12)),
    "divided into heads: name the head": AddByRow(OUT, torch.ones(2, 6, 4)),
    "resid_post is not divided into heads": AddByRow(STREAM, torch.ones(2, 6, 12), (0, 1)),
    "has 2 rows, not 1": AddByRow(OUT, torch.ones(2, 6, 4), (0,)),
    "head_out has no head 4": AddByRow(OUT, torch.ones(2, 6, 4), (0, 4)),
    "weights has the shape": KeepCells(WEIGHTS, torch.ones(6, 5)),
}


def test_a_batch_of_edits_is_one_edit_each() -> None:
    heads, ids, value = (2, 0, 1), IDS[:1].expand(3, -1), OTHER[OUT][0]
    edits = (AblateHeads(OUT, heads), PatchHeads(OUT, heads, value))
    zeroed, patched = (trace(MODEL, ids, edits=[edit])[OUT] for edit in edits)
    for row, head in enumerate(heads):
        close(zeroed[row], edited(Scale(OUT, head=head))[OUT][0])
        others = [each for each in range(3) if each != head]
        close(patched[row, head], value[head])
        close(patched[row, others], PLAIN[OUT][0, others])


def test_a_batch_of_changes_is_one_change_each() -> None:
    """To the whole residual stream, and each row to a head of its own."""
    heads, ids = (2, 0, 2), IDS[:1].expand(3, -1)
    random = torch.Generator().manual_seed(4)
    to_stream, to_heads = (torch.randn(3, 6, width, generator=random) for width in (12, 4))
    q_input = f"{LAST}.q_input"
    to_inputs = to_stream.flip(0)
    added = ((STREAM, to_stream, None), (OUT, to_heads, heads), (q_input, to_inputs, heads))
    for row, head in enumerate(heads):
        for site, values, at in added:
            found = trace(MODEL, ids, edits=[AddByRow(site, values, at)])
            value = PLAIN[site][:1].clone()
            (value if at is None else value[:, head])[:] += values[row]
            close(found[site][row], value[0])
            close(found.output[row], trace(MODEL, IDS[:1], edits=[Replace(site, value)]).output[0])


def test_cells_that_are_left_out_are_cut_edges() -> None:
    cells = torch.ones(1, 3, 6, 6)
    cells[0, 2, 4, 1] = 0
    cut = edited(SetCell(f"{LAST}.weights", 4, 1, head=2))
    close(edited(KeepCells(f"{LAST}.weights", cells)).output, cut.output)


def test_an_edit_that_cannot_be_made_says_why() -> None:
    for words, edit in MISFITS.items():
        with pytest.raises(EditError, match=words):
            edited(edit)

"""What interventions reach, and the flow of information in a pass that they changed."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.block_inside import block_inside
from explorer.analysis.information_flow import InformationFlow, information_flow, route
from explorer.analysis.logit_lens import can_change, residual_streams
from explorer.inference.core_edits import source_pass
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import run_batch_uncached
from explorer.interventions import edits
from tests.analysis.conftest import TEXT, opened_of
from tests.closeness import assert_close_to as close
from tests.inference.test_edited_pass import opened

KINDS = ("grouped", "after", "around", "beside", "both", "windows", "masked")
OTHER = "le chat sleeps"


def shares_of(flow: InformationFlow) -> list[torch.Tensor]:
    blocks = [block for stack in flow.stacks.values() for block in stack]
    parts = [part for block in blocks for part in block.attentions.values()]
    mlps = [block.mlp for block in blocks if block.mlp is not None]
    return [*(part.keys for part in parts), *(part.residual for part in parts), *mlps]


@pytest.mark.parametrize("name", KINDS)
def test_an_ablation_flows_as_in_a_model_without_that_part(name: str, tmp_path: Path) -> None:
    found, other = opened_of(tmp_path / "one", name), opened_of(tmp_path / "two", name)
    (forward,) = run_batch_uncached(found, (TEXT,))
    part = forward.parts[0].name
    changes = (edits.AblateHead(part, 0, 1), edits.AblateMlp(part, 0))
    edited = run_edited(found, forward, changes).forward
    block = getattr(other.model, part.split(".")[0]).blocks[0]
    with torch.no_grad():
        projection, width = block.self_attn.o_proj.weight, found.config.head_width
        projection[:, width : 2 * width] = 0
        for weight in block.mlp.down_proj.parameters():
            weight.zero_()
    (without,) = run_batch_uncached(other, (TEXT,))
    ours, theirs = (shares_of(information_flow(one)) for one in (edited, without))
    for mine, expected in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, expected, atol=1e-12, equal_nan=True)
    after = f"{part.split('.')[0]}.0.resid_post"
    inside = block_inside(edited, part.split(".")[0], 0).parts[-1]
    close(inside.cells.abs().max(), edited.trace[after].abs().max())


@pytest.mark.parametrize("name", KINDS)
def test_a_patch_changes_what_it_can_reach_and_its_importance_ends(
    name: str, tmp_path: Path
) -> None:
    found = opened_of(tmp_path, name)
    (forward,) = run_batch_uncached(found, (TEXT,))
    part = forward.parts[1 if name == "both" else 0].name
    stack, count = part.split(".")[0], len(forward.rows(part))
    place = min(2, count - 2)
    patch = edits.Patch(part, 0, None, place, OTHER, 1)
    edited = run_edited(found, forward, (patch,)).forward
    other, site = source_pass(found, forward, OTHER), f"{stack}.0.resid_post"
    close(edited.trace[site][0, place], other.trace[site][0, 1])
    both = zip(residual_streams(forward.trace)[1:], residual_streams(edited.trace)[1:], strict=True)
    reach = can_change(edited, edited.edits)
    is_changed = torch.stack([((new - old)[0].abs() > 0).any(-1) for old, new in both])
    assert not (is_changed & ~reach).any()
    assert is_changed[0].nonzero().flatten().tolist() == [place]
    flow = information_flow(edited)
    before, after = route(flow, flow.starts[place]).streams[stack][:2]
    assert after[place] > 0
    assert before.sum() <= after.sum() - after[place] + 1e-9


def test_masks_say_which_positions_a_change_reaches(small_models: None) -> None:
    found, forward = opened("letters")
    n, part = len(forward.target), "decoder.self_attn"
    for edit, first, later in (
        (edits.AblateHead(part, 1, 0), [False] * n, [True] * n),
        (edits.CutEdge(part, 0, 0, 2, 1), [q == 2 for q in range(n)], [q >= 2 for q in range(n)]),
        (edits.ReplaceToken(part, 3, 5), [q >= 3 for q in range(n)], [q >= 3 for q in range(n)]),
    ):
        edited = run_edited(found, forward, (edit,)).forward
        assert can_change(edited, edited.edits).tolist() == [first, later], edit

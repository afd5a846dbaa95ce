"""What interventions reach, and the flow of information in a pass that they changed."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.block_inside import block_inside
from explorer.analysis.information_flow import information_flow, route
from explorer.analysis.logit_lens import can_change, residual_streams
from explorer.inference.core_edits import source_pass
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import run_batch_uncached
from explorer.interventions import edits
from tests.analysis.conftest import TEXT, opened_of
from tests.closeness import assert_close_to as close

OTHER, PLACE = "le chat sleeps", 2
NAMES = "grouped", "after", "around", "beside", "both", "windows", "masked"


@pytest.mark.parametrize("name", NAMES)
def test_an_ablation_flows_as_in_a_model_without_that_part(name: str, tmp_path: Path) -> None:
    found, other = (opened_of(tmp_path / folder, name) for folder in ("one", "two"))
    (forward,) = run_batch_uncached(found, (TEXT,))
    part = forward.parts[0].name
    stack, changes = part.split(".")[0], (edits.AblateHead(part, 0, 1), edits.AblateMlp(part, 0))
    edited = run_edited(found, forward, changes).forward
    block, width = getattr(other.model, stack).blocks[0], found.config.head_width
    block.self_attn.o_proj.weight.detach()[:, width : 2 * width] = 0
    for weight in block.mlp.down_proj.parameters():
        weight.detach().zero_()
    (without,) = run_batch_uncached(other, (TEXT,))
    flows = map(information_flow, (edited, without))
    mine, theirs = (route(flow, flow.starts[-1]).streams[stack] for flow in flows)
    assert torch.allclose(mine, theirs, atol=1e-12)
    end = block_inside(edited, stack, 0).parts[-1].cells.abs().max()
    close(end, edited.trace[f"{stack}.0.resid_post"].abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_changes_what_it_can_reach_and_its_flow_ends(name: str, tmp_path: Path) -> None:
    found = opened_of(tmp_path, name)
    (forward,) = run_batch_uncached(found, (TEXT,))
    part = forward.parts[1 if name == "both" else 0].name
    stack, before = part.split(".")[0], torch.stack(residual_streams(forward.trace)[1:])
    patch = edits.Patch(part, 0, None, PLACE, OTHER, 1)
    for edit in (edits.CutEdge(part, 0, 0, PLACE, 0), edits.ReplaceToken(part, PLACE, 5), patch):
        edited = run_edited(found, forward, (edit,)).forward
        change = (torch.stack(residual_streams(edited.trace)[1:]) - before)[:, 0]
        is_changed = change.abs().amax(-1) > 1e-9
        assert not (is_changed & ~can_change(edited, edited.edits)).any()
        assert is_changed[0, PLACE]
    other, site = source_pass(found, forward, OTHER), f"{stack}.0.resid_post"
    close(edited.trace[site][0, PLACE], other.trace[site][0, 1])
    flow = information_flow(edited)
    below, above = route(flow, flow.starts[PLACE]).streams[stack][:2]
    assert below.sum() <= above.sum() - above[PLACE] + 1e-9 < above.sum()

"""The inside of a block: the stages of the watched pass, in their order, as small pictures."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.analysis import block_inside
from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.stages import stages_of
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from models import trace
from models.trace import EVERYTHING
from tests.analysis.conftest import inputs_of
from tests.analysis.kinds_of_model import CONFIGS
from tests.analysis.test_forward_pass import values_of
from tests.closeness import assert_close_to
from tests.tiny import saved_and_opened


def blocks(found: ForwardPass) -> list[tuple[str, int]]:
    """Those of the first two layers of each stack."""
    names = {(stage.stack, stage.layer) for stage in stages_of(found.config)}
    return [(stack, layer) for stack, layer in names if layer in (0, 1)]


def pooled(values: Tensor, part: block_inside.BlockPart) -> Tensor:
    """The number of largest absolute value in each cell; −∞ where a cell has no other."""
    sizes = torch.where(values.isfinite(), values.abs(), -1.0)
    _, at = F.max_pool2d(sizes[None], part.pooled, ceil_mode=True, return_indices=True)
    return values.flatten()[at[0]]


def test_every_picture_is_of_the_watched_pass(found: ForwardPass) -> None:
    """What the pass records is compared with it; what lies between, with the Forward pass page."""
    passed = trace(found.trace.model, *inputs_of(found), sites=EVERYTHING)
    heads = [values_of(found, head) for head in range(found.config.n_heads)]
    for stack, layer in blocks(found):
        for part in block_inside.block_inside(found, stack, layer).parts:
            stage, count = part.stage, len(part.cells)
            if stage.site:
                whole = passed[stage.site][0]
                whole = whole.expand(count, *whole.shape[-2:]) if stage.per_head else whole[None]
            else:
                every = found.config.n_heads // count if stage.per_head else 1
                whole = torch.stack([heads[at * every][part.name] for at in range(count)])
            for cells, values in zip(part.cells, whole, strict=True):
                assert_close_to(cells, pooled(values.float(), part), what=part.name)


def test_parts_stand_in_the_order_they_run_and_read_what_is_there(found: ForwardPass) -> None:
    every = {stage.name: stage for stage in stages_of(found.config)}
    for stack, layer in blocks(found):
        parts = block_inside.block_inside(found, stack, layer).parts
        own = [p.name for p in parts if (p.stage.stack, p.stage.layer) == (stack, layer)]
        there = [each for each in every.values() if (each.stack, each.layer) == (stack, layer)]
        assert own == [each.name for each in there if each.kind not in block_inside.LEFT_OUT]
        seen: set[str] = set()
        for part in parts:
            assert set(part.reads) <= seen, part.name
            assert bool(part.reads) == (part.name in own) or part.stage.kind == "bias", part.name
            seen.add(part.name)
        assert parts[0].on_stream
        assert parts[-1].on_stream
        is_crossed = stack == "decoder" and found.config.kind == "encoder-decoder"
        added = 1 + is_crossed + (found.config.d_ff > 0)
        assert sum(part.stage.kind == "add" for part in parts if part.name in own) == added
        columns = [part.column for part in parts]
        assert sorted(set(columns)) == list(range(max(columns) + 1))


def test_every_part_of_every_kind_of_model_has_a_formula() -> None:
    for config in CONFIGS.values():
        for stage in stages_of(config):
            if stage.layer is not None and stage.kind not in block_inside.LEFT_OUT:
                short = KINDS[stage.kind].short(stage, config)
                assert short, stage.name
                assert short.isprintable(), stage.name
                assert "\\" not in short, stage.name


def test_a_long_text_and_wide_vectors_are_pooled(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"n_heads": 12, "d_model": 240, "d_ff": 300, "max_len": 80}
    opened = saved_and_opened(tmp_path, "long", **sizes)
    forward = forward_pass.run_text(opened, "the cat sleeps " * 23)
    assert len(forward.target) > 2 * block_inside.MOST_ROWS
    for part in block_inside.block_inside(forward, "decoder", 0).parts:
        heads, rows, columns = part.cells.shape
        assert heads * rows * columns <= block_inside.MOST_INSIDE_CELLS
        assert rows <= block_inside.MOST_ROWS
        assert columns <= block_inside.MOST_COLUMNS
        if part.stage.kind == "weights":
            whole = torch.stack([forward.weights(part.stage.part, 0, head) for head in range(12)])
        elif part.name == "decoder.0.resid_post":
            whole = forward.trace[part.name]
        else:
            continue
        assert part.pooled > (1, 1)
        for cells, values in zip(part.cells, whole, strict=True):
            assert_close_to(cells, pooled(values, part), what=part.name)

"""A path is a pass in which one input of one head alone reads another write."""

import pytest
import torch

from explorer.analysis.attribution_patching import through_output
from explorer.analysis.contrast import Contrast
from explorer.analysis.exact_edges import exact_edges
from explorer.analysis.path_patching import Edge, edge_grid, edges_from, edges_into
from explorer.analysis.wiring import INPUTS, wiring_of
from models import TransformerConfig, trace
from models.interventions import Replace
from tests.analysis.test_causal_tracing import contrast_of
from tests.grids import grid
from tests.models.building import config_of

MODELS = {
    "rotary, grouped": config_of("decoder", positions="rotary", n_kv_heads=1, n_layers=3),
    "alibi, windows": config_of("decoder", positions="alibi", windows=(0, 2, 3), n_layers=3),
    "parallel": config_of("decoder", parallel=True, n_layers=3),
    "attention only": config_of("decoder", d_ff=0, n_layers=3),
    "encoder": config_of("encoder", head="masked-language-model", n_layers=3),
}


def written(contrast: Contrast, text: torch.Tensor, layer: int, head: int) -> torch.Tensor:
    """What a head adds to the residual stream, (t, d)."""
    stack = contrast.config.stacks[-1]
    site = f"{stack}.{layer}.self_attn.head_out"
    seen = trace(contrast.model, text, sites=[site])[site][0]
    return through_output(contrast.model.last_stack.blocks[layer].self_attn, seen)[head]


def alone(contrast: Contrast, path: Edge) -> float:
    """What a whole pass with this path loses."""
    wiring = wiring_of(contrast.config)
    to, sender = wiring.rows[path[0]], wiring.columns[path[1]]
    layer = f"{wiring.stack}.{to.layer}"
    site = {
        "head": f"{layer}.self_attn.{to.reads}_input",
        "feed-forward": f"{layer}.mlp.input",
        "logits": f"{wiring.stack}.{wiring.layers - 1}.resid_post",
    }[to.kind]
    both = (contrast.corrupted, contrast.clean)
    lost = torch.sub(*(written(contrast, text, sender.layer, sender.head) for text in both))
    value = trace(contrast.model, contrast.clean, sites=[site])[site].clone()
    if to.kind == "head":
        value[:, to.head] += lost
    else:
        value += lost
    passes = [
        trace(contrast.model, contrast.clean, read_at=contrast.read_at, edits=edits).output
        for edits in ([], [Replace(site, value)])
    ]
    clean, patched = (float(contrast.measured(each)) for each in passes)
    return clean - patched


@grid("reads, config", INPUTS, MODELS.values())
def test_a_path_is_a_pass_of_its_own(config: TransformerConfig, reads: str) -> None:
    contrast = contrast_of(config)
    wiring = wiring_of(config)
    paths = edges_from(wiring, 0, 1, reads)  # type: ignore[arg-type]
    found = dict(exact_edges(contrast, paths))
    assert len(found) == len(paths)
    for at, path in enumerate(paths):
        assert found[at] == pytest.approx(alone(contrast, path), abs=2e-5)


def test_paths_of_a_head_and_into_it() -> None:
    wiring = wiring_of(config_of("decoder", n_layers=3))
    out = edges_from(wiring, 1, 2, "k")
    ends = [wiring.rows[row] for row, _ in out]
    assert [(end.kind, end.layer) for end in ends] == [
        ("feed-forward", 1),
        *[("head", 2)] * 3,
        ("feed-forward", 2),
        ("logits", 0),
    ]
    into = edges_into(wiring, 1, 2, "v")
    assert [wiring.columns[column].kind for _, column in into] == [
        "embedding",
        *["head"] * 3,
        "feed-forward",
    ]
    assert {wiring.rows[row] for row, _ in into} == {
        place for place in wiring.rows if (place.layer, place.head, place.reads) == (1, 2, "v")
    }


def test_the_grid_has_a_value_at_every_end_and_none_elsewhere() -> None:
    wiring = wiring_of(config_of("decoder", n_layers=3))
    ends = [wiring.rows[row] for row, _ in edges_from(wiring, 1, 2, "q")]
    found = edge_grid(wiring, ends, [float(at) for at in range(len(ends))])
    assert found.shape == (4, 3)
    assert found[:, 2].tolist() == [1, 2, 3, 4]
    assert found[3, 1] == 0
    assert int(found.isnan().sum()) == 12 - 5

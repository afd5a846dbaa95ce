"""Branches that compute only the tokens from where two texts part are whole patched passes."""

import pytest
import torch
from torch import Tensor

from explorer.analysis import ablation
from explorer.analysis.ablation import RecordedPass, multiplications
from explorer.analysis.patching import (
    PATCHED_SITES,
    patch_embedding,
    patch_every_head,
    patch_feed_forwards,
    shared_tokens,
)
from explorer.catalog.attention_parts import parts
from models import Transformer, TransformerConfig, trace
from models.interventions import Edit, Replace, Scale
from models.trace import CHEAP_SITES, Trace
from tests.grids import grid
from tests.models.building import config_of, inputs_of, shaken
from tests.models.grid import ODDITIES

SHARED, PLACE = 3, 4
MODELS = {
    **{name: config for name, config in ODDITIES.items() if config.head != "none"},
    **{
        positions: config_of("decoder", n_layers=3, positions=positions, windows=(0, 2, 3))
        for positions in ("sinusoidal", "learned", "rotary", "alibi", "relative")
    },
    "post": config_of("decoder", norm_position="post", n_kv_heads=1),
    "parallel, grouped": config_of("decoder", positions="rotary", parallel=True, n_kv_heads=1),
    "encoder": config_of("encoder", norm_position="sandwich"),
}


class Pair:
    """Two texts that begin alike, a recorded pass of one and what is patched from the other."""

    def __init__(
        self, config: TransformerConfig, padded: tuple[int, ...] = (), parts_at: int = SHARED
    ) -> None:
        self.model: Transformer = shaken(config, torch.float32)
        self.clean = inputs_of(config, batch=1)
        self.corrupted = tuple(each.clone() for each in self.clean)
        self.corrupted[-1][:, parts_at:] = self.clean[-1][:, parts_at:] % 10 + 3
        for ids in (self.clean[-1], self.corrupted[-1]):
            ids[:, list(padded)] = config.pad_id or 0
        self.shared = shared_tokens(self.clean[-1], self.corrupted[-1])
        self.other: Trace = trace(self.model, *self.corrupted, sites=PATCHED_SITES)

    def base(self, *edits: Edit, shared: int = SHARED) -> RecordedPass:
        recorded = trace(self.model, *self.clean, sites=CHEAP_SITES, edits=edits)
        return RecordedPass(recorded, self.clean, PLACE, edits, shared)

    def alone(self, site: str, head: int | None = None, *edits: Edit) -> Tensor:
        """What a whole pass of the clean text answers with this value of the corrupted one."""
        patch: Edit = Replace(site, self.other[site])
        if head is not None:
            clean = trace(self.model, *self.clean, sites=[site], edits=edits)[site].clone()
            clean[:, head] = self.other[site][:, head]
            patch = Replace(site, clean)
        output = trace(self.model, *self.clean, sites=("logits",), edits=[*edits, patch]).output
        return output[0, PLACE] if output.dim() == 3 else output[0]

    def all_equal(self, base: RecordedPass) -> None:
        for part in parts(self.model.config):
            stack, attention = part.name.split(".")
            if stack == "encoder" and len(base.inputs) > 1:
                continue  # its text is the same in both
            found = patch_every_head(base, self.other, part.name, part.layers)
            for layer, heads in enumerate(found):
                for head, logits in enumerate(heads):
                    site = f"{stack}.{layer}.{attention}.head_out"
                    close(logits, self.alone(site, head, *base.edits))
            feed_forwards = list(patch_feed_forwards(base, self.other, stack))
            assert len(feed_forwards) == (part.layers if self.model.config.d_ff else 0)
            for layer, (logits,) in enumerate(feed_forwards):
                close(logits, self.alone(f"{stack}.{layer}.mlp.out", None, *base.edits))
            (logits,) = patch_embedding(base, self.other, stack)
            close(logits, self.alone(f"{stack}.0.resid_pre", None, *base.edits))


def close(found: Tensor, alone: Tensor) -> None:
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)


@grid("padded, config", [(), (0, 1), (-1,)], MODELS.values())
def test_a_branch_from_where_they_part_is_a_whole_pass(
    config: TransformerConfig, padded: tuple[int, ...]
) -> None:
    pair = Pair(config, padded)
    base = pair.base(shared=pair.shared)
    pair.all_equal(base)
    starts = {part.name: base.start(part.name) for part in parts(config)}
    is_shared = config.kind != "encoder" and config.head == "language-model"
    expected = SHARED if is_shared else 0
    assert {start for name, start in starts.items() if name.startswith("decoder")} <= {expected}
    assert starts.get("encoder.self_attn", 0) == 0


def test_in_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a layer, one layer, and all layers in one batch."""
    config = MODELS["alibi"]
    for rows in (2, 3, 9):
        of_row = (6 - SHARED) * max(config.d_ff, 4 * config.d_model)
        monkeypatch.setattr(ablation, "NUMBERS_HELD", rows * of_row)
        pair = Pair(config)
        pair.all_equal(pair.base())


def test_edits_of_the_recorded_pass_name_all_positions() -> None:
    pair = Pair(config_of("decoder"))
    base = pair.base(Scale("decoder.0.mlp.out"))
    assert base.start("decoder.self_attn") == 0
    pair.all_equal(base)


def test_the_read_position_is_always_computed() -> None:
    """Where the texts part only behind it, nothing that is read changes."""
    for parts_at in (PLACE, PLACE + 1):
        pair = Pair(config_of("decoder"), parts_at=parts_at)
        base = pair.base(shared=pair.shared)
        assert base.start("decoder.self_attn") == PLACE
        pair.all_equal(base)


def test_fewer_tokens_cost_less() -> None:
    pair = Pair(config_of("decoder"))
    costs = [multiplications(pair.base(shared=n), "decoder.self_attn", 0) for n in (0, 3)]
    assert costs[1] < costs[0]


def test_tokens_that_two_texts_begin_with() -> None:
    one = torch.tensor([[4, 5, 6]])
    assert [shared_tokens(one, torch.tensor([other])) for other in ([3, 5, 6], [4, 9, 6])] == [0, 1]
    assert shared_tokens(one, one) == 3

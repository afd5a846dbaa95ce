"""Edits: each does what it says, only that, and never silently nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from models.interventions import (
    Edit,
    EditError,
    ForbidKey,
    FromOther,
    KeepCells,
    Mean,
    Replace,
    ReplaceAt,
    Scale,
    SetCell,
    SetMask,
    Without,
    WithoutKey,
)
from models.masking import causal_mask
from models.trace import CHEAP_SITES, trace
from tests.models.building import config_of, ids_of, inputs_of, keep_of_lengths, shaken

CONFIG = config_of("decoder")
MODEL = shaken(CONFIG)
IDS = ids_of(2, 6)
FIRST = "decoder.0.self_attn"
LAST = "decoder.1.self_attn"
PLAIN = trace(MODEL, IDS)
TRIANGLE = tuple(tuple(row) for row in causal_mask(6)[0, 0].tolist())
close = torch.testing.assert_close


def edited(*edits: Edit, sites: tuple[str, ...] = ("*",)) -> Any:
    return trace(MODEL, IDS, sites=sites, edits=edits)


def test_every_site_can_be_edited(subtests: pytest.Subtests) -> None:
    """Half of any value: the site shows it, what came before is as it was."""
    for site in [s for s in PLAIN.sites if "mask" not in s and "positions" not in s]:
        with subtests.test(site=site):
            halved = edited(Scale(site, 0.5))
            for name, value in PLAIN.values.items():
                if name == site:
                    close(halved[name], value / 2)
                    break
                assert torch.equal(halved[name], value), name
            fused = edited(Scale(site, 0.5), sites=("logits",))
            close(fused.output, halved.output)
            if not site.endswith("bias"):  # half of no bias is none
                assert not torch.allclose(halved.output, PLAIN.output)


def test_what_was_edited_is_shown_whatever_is_recorded() -> None:
    hidden = WithoutKey(f"{FIRST}.weights", 0)
    everything, cheap = edited(hidden), edited(hidden, sites=CHEAP_SITES)
    close(cheap.output, everything.output)
    for attention in (FIRST, LAST):
        close(cheap.weights(attention), everything.weights(attention))
        close(cheap.weights(attention, head=1), everything.weights(attention, head=1))


def test_derived_weights_follow_an_edit(subtests: pytest.Subtests) -> None:
    for site in ["scores", "bias", "q", "k", "mask"]:
        with subtests.test(site=site):
            edit: Edit = Scale(f"{FIRST}.{site}", 3.0)
            if site == "mask":
                edit = SetMask(f"{FIRST}.mask", ((True,) * 6,) * 6)
            if site == "bias":
                edit = Replace(f"{FIRST}.bias", torch.linspace(-2, 2, 6))
            everything, cheap = edited(edit), edited(edit, sites=CHEAP_SITES)
            close(cheap.weights(FIRST), everything[f"{FIRST}.weights"])
            assert not torch.allclose(cheap.weights(FIRST), PLAIN.weights(FIRST))


def test_ablating_a_head_is_zeroing_its_slice_of_the_output_projection(
    subtests: pytest.Subtests,
) -> None:
    for head in range(CONFIG.n_heads):
        with subtests.test(head=head):
            ablated = edited(Scale(f"{LAST}.head_out", head=head))
            other = shaken(CONFIG)
            assert other.decoder is not None
            width = CONFIG.head_width
            with torch.no_grad():
                weight: Any = other.decoder.get_submodule("blocks.1.self_attn.o_proj").weight
                weight[:, head * width : (head + 1) * width] = 0
            close(ablated.output, other(IDS))
            close(ablated.output, edited(Scale(f"{LAST}.weights", head=head)).output)
            for others in set(range(CONFIG.n_heads)) - {head}:
                close(ablated[f"{LAST}.head_out"][:, others], PLAIN[f"{LAST}.head_out"][:, others])


def test_hiding_a_key_renormalises_its_rows() -> None:
    hidden = edited(WithoutKey(f"{FIRST}.weights", 0)).weights(FIRST)
    before = PLAIN.weights(FIRST)
    assert (hidden[..., 0] == 0).all()
    assert (hidden[:, :, 0] == 0).all(), "the first query saw nothing else"
    left = before.clone()
    left[..., 0] = 0
    close(hidden[:, :, 1:], left[:, :, 1:] / left[:, :, 1:].sum(-1, keepdim=True))


def test_hiding_a_key_is_masking_it() -> None:
    allowed = torch.tensor(TRIANGLE)
    allowed[:, 2] = False
    masked = SetMask(f"{FIRST}.mask", tuple(tuple(row) for row in allowed.tolist()))
    close(edited(WithoutKey(f"{FIRST}.weights", 2)).output, edited(masked).output)


def test_setting_the_mask_changes_only_what_it_should() -> None:
    same = edited(SetMask("*.self_attn.mask", TRIANGLE))
    close(same.output, PLAIN.output)
    rows = [list(row) for row in TRIANGLE]
    rows[3][1] = False
    changed = edited(SetMask(f"{LAST}.mask", tuple(map(tuple, rows))))
    untouched = [0, 1, 2, 4, 5]
    close(changed.output[:, untouched], PLAIN.output[:, untouched])
    assert not torch.allclose(changed.output[:, 3], PLAIN.output[:, 3])
    assert (changed.weights(LAST)[:, :, 3, 1] == 0).all()


def test_a_mask_may_be_set_over_padding() -> None:
    keep = keep_of_lengths([6, 4], 6)
    everything = SetMask("*.mask", ((True,) * 6,) * 6)
    seen = trace(MODEL, IDS, keep=keep, edits=[everything])
    assert (seen.weights(FIRST) > 0).all()
    nothing = SetMask("*.mask", ((False,) * 6,) * 6)
    blind = trace(MODEL, IDS, edits=[nothing])
    assert (blind.weights(FIRST) == 0).all()
    assert blind.output.isfinite().all()
    close(blind.output, trace(MODEL, IDS, edits=[Scale("*.head_out")]).output)


def test_patching_carries_a_pass_over() -> None:
    other = trace(MODEL, ids_of(2, 6, seed=9))
    patched = edited(Replace("decoder.1.resid_pre", other["decoder.1.resid_pre"]))
    close(patched.output, other.output)
    row = edited(Replace("decoder.1.resid_pre", other["decoder.1.resid_pre"][:1]))
    close(row.output[0], other.output[0])


def test_edits_are_made_in_their_order() -> None:
    site = "decoder.0.mlp.hidden"
    one = torch.ones(())
    close(edited(Scale(site), Replace(site, one))[site], one.double().expand(2, 6, 20))
    close(edited(Replace(site, one), Scale(site, 3))[site], (3 * one).double().expand(2, 6, 20))


def test_cross_attention_can_be_edited() -> None:
    config = config_of("encoder-decoder")
    model, inputs = shaken(config), inputs_of(config)
    blind = trace(model, *inputs, edits=[SetMask("*.cross_attn.mask", ((False,) * 6,) * 5)])
    assert all((blind.weights(f"decoder.{i}.cross_attn") == 0).all() for i in range(2))
    assert torch.equal(blind["memory"], trace(model, *inputs)["memory"])


def test_mean_ablation_leaves_a_head_its_mean_over_positions() -> None:
    site = f"{FIRST}.head_out"
    seen = edited(Mean(site, head=1))[site]
    close(seen[:, 1], PLAIN[site][:, 1].mean(-2, keepdim=True).expand(2, 6, 4))
    close(seen[:, [0, 2]], PLAIN[site][:, [0, 2]])
    every = edited(Mean("decoder.0.mlp.out"))["decoder.0.mlp.out"]
    close(every, PLAIN["decoder.0.mlp.out"].mean(1, keepdim=True).expand_as(every))


def test_a_batch_of_ablations_is_one_ablation_each(subtests: pytest.Subtests) -> None:
    for mean in [False, True]:
        with subtests.test(mean=mean):
            site = f"{FIRST}.head_out"
            rows = trace(
                MODEL, IDS[:1].expand(3, -1), edits=[Without(site, (2, 0, 1), mean)]
            ).output
            for row, head in enumerate((2, 0, 1)):
                alone: Edit = Mean(site, head) if mean else Scale(site, head=head)
                close(rows[row], trace(MODEL, IDS[:1], edits=[alone]).output[0])


def test_an_edge_that_is_cut_carries_nothing_and_nothing_takes_its_place() -> None:
    cut = edited(SetCell(f"{LAST}.weights", 4, 1, head=2))
    before, after = PLAIN.weights(LAST), cut.weights(LAST)
    assert (after[:, 2, 4, 1] == 0).all()
    close(after[:, 2, 4].sum(-1), 1 - before[:, 2, 4, 1])
    close(after[:, :2], before[:, :2])
    carried = before[:, 2, 4, 1, None] * PLAIN[f"{LAST}.v"][:, 2, 1]
    close(cut[f"{LAST}.head_out"][:, 2, 4], PLAIN[f"{LAST}.head_out"][:, 2, 4] - carried)
    cells = torch.ones(1, 3, 6, 6)
    cells[0, 2, 4, 1] = 0
    close(edited(KeepCells(f"{LAST}.weights", cells)).output, cut.output)


def test_an_edge_at_its_mean_looks_as_others_do_at_that_key() -> None:
    mean = edited(SetCell(f"{FIRST}.weights", 5, 2, None)).weights(FIRST)
    looking = PLAIN.weights(FIRST)[:, :, 2:, 2]  # a decoder's queries before 2 may not look
    close(mean[:, :, 5, 2], looking.mean(-1))


def test_a_cell_of_the_mask_and_a_forbidden_key() -> None:
    rows = [list(row) for row in TRIANGLE]
    rows[3][1] = False
    same = edited(SetMask(f"{FIRST}.mask", tuple(map(tuple, rows)))).output
    close(edited(SetCell(f"{FIRST}.mask", 3, 1, False)).output, same)
    ahead = edited(SetCell(f"{FIRST}.mask", 1, 4, True))
    assert (ahead.weights(FIRST)[:, :, 1, 4] > 0).all()
    hidden = edited(WithoutKey(f"{FIRST}.weights", 2)).output
    close(edited(ForbidKey(f"{FIRST}.mask", 2)).output, hidden)


def test_patching_one_position_changes_it_and_what_looks_at_it() -> None:
    other = trace(MODEL, ids_of(2, 6, seed=9))
    for site, head in (("decoder.0.resid_post", None), (f"{FIRST}.head_out", 1)):
        vector = other[site][0, 3] if head is None else other[site][0, head, 3]
        patched = edited(ReplaceAt(site, 3, vector, head))
        seen = patched[site][0, 3] if head is None else patched[site][0, head, 3]
        close(seen, vector)
        close(patched.output[:, :3], PLAIN.output[:, :3])
        assert not torch.allclose(patched.output[:, 3:], PLAIN.output[:, 3:])


def test_edits_leave_the_recorded_pass_as_it_was() -> None:
    before = {site: PLAIN[site].clone() for site in PLAIN.sites}
    for edit in (SetCell(f"{FIRST}.weights", 4, 1), Mean("decoder.0.mlp.out")):
        for value in PLAIN.values.values():
            if value.is_floating_point() and value.dim() == 4 and value.shape[-1] == 6:
                edit(value)
    assert all(torch.equal(before[site], PLAIN[site]) for site in PLAIN.sites)


MISFITS: dict[str, Edit] = {
    "is called decoder.7.mlp.out": Scale("decoder.7.mlp.out"),
    "No site of this pass is called nonsense": Scale("nonsense"),
    "has no head 3: there are 3": Scale(f"{FIRST}.head_out", head=3),
    "has no head -1": Scale(f"{FIRST}.head_out", head=-1),
    "is not divided into heads": Scale("decoder.0.mlp.out", head=1),
    "has no key 6: there are 6": WithoutKey(f"{FIRST}.weights", 6),
    "holds no weights": WithoutKey(f"{FIRST}.mask", 0),
    "which is torch.bool": Scale(f"{FIRST}.mask"),
    "which is torch.int64": Scale("decoder.positions"),
    "which is torch.float64": SetMask(f"{FIRST}.weights", TRIANGLE),
    "has the shape": Replace("decoder.0.resid_pre", torch.zeros(2, 7, 12)),
    "covers \\(6, 6\\) queries and keys, not \\(5, 6\\)": SetMask(f"{FIRST}.mask", TRIANGLE[1:]),
    "has no numbers|no numbers that have a mean": Mean(f"{FIRST}.mask"),
    "is no batch of 3 over heads": Without(f"{FIRST}.head_out", (0, 1, 2)),
    "is no batch of 1 over \\(3, 6, 5\\)": FromOther(
        f"{FIRST}.head_out", (0,), torch.ones(3, 6, 5)
    ),
    "weights has no query 6": SetCell(f"{FIRST}.weights", 6, 0),
    "is torch.bool, not 0.5": SetCell(f"{FIRST}.mask", 0, 0, 0.5),
    "is torch.float64, not True": SetCell(f"{FIRST}.weights", 0, 0, True),
    "is no mask": ForbidKey(f"{FIRST}.weights", 0),
    "has no position 6": ReplaceAt("decoder.0.resid_post", 6, torch.zeros(12)),
    "has the shape \\(12,\\), not \\(5,\\)": ReplaceAt("decoder.0.resid_post", 0, torch.zeros(5)),
    "weights has the shape": KeepCells(f"{FIRST}.weights", torch.ones(6, 5)),
    "not equally long": SetMask(f"{FIRST}.mask", ((True,), (True, False))),
}


def test_an_edit_that_cannot_be_made_says_why(subtests: pytest.Subtests) -> None:
    for words, edit in MISFITS.items():
        with subtests.test(words=words), pytest.raises(EditError, match=words):
            edited(edit)


def test_one_missed_edit_among_good_ones_is_told() -> None:
    with pytest.raises(EditError, match=r"decoder\.9\.q"):
        edited(Scale(f"{FIRST}.q"), Scale("decoder.9.q"))
    assert edited(Scale("decoder.*.mlp.out")).sites == PLAIN.sites


def test_each_row_goes_on_without_its_own_head(subtests: pytest.Subtests) -> None:
    for kind in [Without, FromOther]:
        with subtests.test(kind=kind):
            value = torch.rand(2, 2, 4, 5) + 1
            more = {"value": torch.zeros(2, 4, 5)} if kind is FromOther else {}
            changed = kind("x.head_out", (0, 1), **more)(value)
            assert not changed[0, 0].any()
            assert not changed[1, 1].any()
            assert torch.equal(changed[0, 1], value[0, 1])
            assert torch.equal(changed[1, 0], value[1, 0])
            with pytest.raises(EditError, match="no batch"):
                kind("x.head_out", (0, 1, 1), **more)(value)

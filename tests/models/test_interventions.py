"""Edits: each does what it says, only that, and never silently nothing."""

from typing import Any

import pytest
import torch

from models.interventions import Add, Edit, EditError, Mean, Replace, ReplaceAt, Scale, SetCell
from models.masking import causal_mask
from models.trace import CHEAP_SITES, trace
from tests.closeness import assert_close_to as close
from tests.models.edits import RemoveKey
from tests.tiny import config_of, ids_of, inputs_of, keep_of_lengths, shaken

CONFIG = config_of("decoder")
MODEL = shaken(CONFIG)
IDS = ids_of(2, 6)
FIRST = "decoder.0.self_attn"
LAST = "decoder.1.self_attn"
MASK, WEIGHTS, OUT = f"{FIRST}.mask", f"{FIRST}.weights", f"{FIRST}.head_out"
STREAM = "decoder.0.resid_post"
PLAIN = trace(MODEL, IDS)
OTHER = trace(MODEL, ids_of(2, 6, seed=9))
TRIANGLE = causal_mask(6)[0, 0]
EVERYTHING, NOTHING = torch.ones(6, 6), torch.zeros(6, 6)


def edited(*edits: Edit, sites: tuple[str, ...] = ("*",)) -> Any:
    return trace(MODEL, IDS, sites=sites, edits=edits)


def mask_of(site: str, allowed: torch.Tensor) -> Replace:
    return Replace(site, allowed.bool())


@pytest.mark.usefixtures("shapes_unchecked")
def test_every_site_can_be_edited() -> None:
    """Half of any value: the site shows it, what came before is as it was."""
    for site in [s for s in PLAIN.sites if "mask" not in s and "positions" not in s]:
        halved = edited(Scale(site, 0.5))
        for name, value in PLAIN.values.items():
            if name == site:
                close(halved[name], value / 2)
                break
            assert torch.equal(halved[name], value), (site, name)
        close(edited(Scale(site, 0.5), sites=("logits",)).output, halved.output)
        if not site.endswith("bias"):  # half of no bias is none
            assert not torch.allclose(halved.output, PLAIN.output), site


def test_derived_weights_follow_an_edit() -> None:
    edits: list[Edit] = [
        *(Scale(f"{FIRST}.{site}", 3.0) for site in ("scores", "q", "k")),
        mask_of(MASK, EVERYTHING),
        Replace(f"{FIRST}.bias", torch.linspace(-2, 2, 6)),
        RemoveKey(WEIGHTS, 0),
    ]
    for edit in edits:
        everything, cheap = edited(edit), edited(edit, sites=CHEAP_SITES)
        close(cheap.output, everything.output)
        for attention in (FIRST, LAST):
            close(cheap.weights(attention), everything[f"{attention}.weights"])
            close(cheap.weights(attention, head=1), everything.weights(attention, head=1))
        assert not torch.allclose(cheap.weights(FIRST), PLAIN.weights(FIRST))


@pytest.mark.usefixtures("shapes_unchecked")
def test_ablating_a_head_is_zeroing_its_slice_of_the_output_projection() -> None:
    for head in range(CONFIG.n_heads):
        ablated = edited(Scale(f"{LAST}.head_out", head=head))
        other, width = shaken(CONFIG), CONFIG.head_width
        assert other.decoder is not None
        with torch.no_grad():
            weight: Any = other.decoder.get_submodule("blocks.1.self_attn.o_proj").weight
            weight[:, head * width : (head + 1) * width] = 0
        close(ablated.output, other(IDS))
        close(ablated.output, edited(Scale(f"{LAST}.weights", head=head)).output)
        others = [each for each in range(CONFIG.n_heads) if each != head]
        close(ablated[f"{LAST}.head_out"][:, others], PLAIN[f"{LAST}.head_out"][:, others])


def test_hiding_a_key_renormalises_its_rows() -> None:
    for key in (0, 2):  # the first query sees no other than the first key
        allowed = TRIANGLE.clone()
        allowed[:, key] = False
        hidden = edited(SetCell(MASK, None, key, False)).output
        close(edited(mask_of(MASK, allowed)).output, hidden)
        close(edited(RemoveKey(WEIGHTS, key)).output, hidden)


def test_setting_the_mask_changes_only_what_it_should() -> None:
    close(edited(mask_of("*.self_attn.mask", TRIANGLE)).output, PLAIN.output)
    allowed = TRIANGLE.clone()
    allowed[3, 1] = False
    changed = edited(mask_of(f"{LAST}.mask", allowed))
    untouched = [0, 1, 2, 4, 5]
    close(changed.output[:, untouched], PLAIN.output[:, untouched])
    assert not torch.allclose(changed.output[:, 3], PLAIN.output[:, 3])
    assert (changed.weights(LAST)[:, :, 3, 1] == 0).all()
    close(edited(SetCell(f"{LAST}.mask", 3, 1, False)).output, changed.output)
    assert (edited(SetCell(MASK, 1, 4, True)).weights(FIRST)[:, :, 1, 4] > 0).all()


def test_a_mask_may_be_set_over_padding_and_in_cross_attention() -> None:
    seen = trace(MODEL, IDS, keep=keep_of_lengths([6, 4], 6), edits=[mask_of("*.mask", EVERYTHING)])
    assert (seen.weights(FIRST) > 0).all()
    blind = trace(MODEL, IDS, edits=[mask_of("*.mask", NOTHING)])
    assert (blind.weights(FIRST) == 0).all()
    assert blind.output.isfinite().all()
    close(blind.output, trace(MODEL, IDS, edits=[Scale("*.head_out")]).output)
    config = config_of("encoder-decoder")
    model, inputs = shaken(config), inputs_of(config)
    blind = trace(model, *inputs, edits=[mask_of("*.cross_attn.mask", NOTHING[:5])])
    assert all((blind.weights(f"decoder.{i}.cross_attn") == 0).all() for i in range(2))
    assert torch.equal(blind["memory"], trace(model, *inputs)["memory"])


def test_patching_carries_over_a_pass_a_row_or_a_position() -> None:
    stream = OTHER["decoder.1.resid_pre"]
    close(edited(Replace("decoder.1.resid_pre", stream)).output, OTHER.output)
    close(edited(Replace("decoder.1.resid_pre", stream[:1])).output[0], OTHER.output[0])
    patched = edited(ReplaceAt(OUT, 3, OTHER[OUT][0, 1, 3], 1))
    close(patched[OUT][0, 1, 3], OTHER[OUT][0, 1, 3])
    close(patched[OUT][:, [0, 2]], PLAIN[OUT][:, [0, 2]])
    close(patched.output[:, :3], PLAIN.output[:, :3])
    assert not torch.allclose(patched.output[:, 3:], PLAIN.output[:, 3:])


def test_edits_are_made_in_their_order_and_leave_the_recorded_pass_as_it_was() -> None:
    site, one = "decoder.0.mlp.hidden", torch.ones(())
    assert (edited(Scale(site), Replace(site, one))[site] == 1).all()
    assert (edited(Replace(site, one), Scale(site, 3))[site] == 3).all()
    before = PLAIN[OUT].clone()
    for edit in (SetCell(OUT, 4, 1), Mean(OUT), ReplaceAt(OUT, 1, before[0, 0, 0])):
        edit(PLAIN[OUT])
    assert torch.equal(before, PLAIN[OUT])


def test_a_mean_is_over_positions_and_of_an_edge_over_who_may_look_at_its_key() -> None:
    seen, before = edited(Mean(OUT, head=1))[OUT], PLAIN[OUT]
    close(seen[:, 1], before[:, 1].mean(-2, keepdim=True).expand(2, 6, 4))
    close(seen[:, [0, 2]], before[:, [0, 2]])
    edge = edited(SetCell(WEIGHTS, 5, 2, None)).weights(FIRST)
    close(edge[:, :, 5, 2], PLAIN.weights(FIRST)[:, :, 2:, 2].mean(-1))


def test_an_edge_that_is_cut_carries_nothing_and_nothing_takes_its_place() -> None:
    cut = edited(SetCell(f"{LAST}.weights", 4, 1, head=2))
    before, after = PLAIN.weights(LAST), cut.weights(LAST)
    assert (after[:, 2, 4, 1] == 0).all()
    close(after[:, 2, 4].sum(-1), 1 - before[:, 2, 4, 1])
    close(after[:, :2], before[:, :2])
    carried = before[:, 2, 4, 1, None] * PLAIN[f"{LAST}.v"][:, 2, 1]
    close(cut[f"{LAST}.head_out"][:, 2, 4], PLAIN[f"{LAST}.head_out"][:, 2, 4] - carried)


def test_what_is_added_is_added_at_every_position_and_row_by_row() -> None:
    direction = torch.linspace(-1, 1, 12, dtype=torch.float64)
    by_hand = PLAIN[STREAM] + 2.5 * direction
    steered = edited(Add(STREAM, direction, 2.5))
    close(steered[STREAM], by_hand)
    close(steered.output, edited(Replace(STREAM, by_hand)).output)
    factors = torch.tensor([-1.0, 3.0])
    rows = edited(Add(STREAM, factors[:, None, None] * direction))
    for row, factor in enumerate(factors.tolist()):
        close(rows.output[row], edited(Add(STREAM, direction, factor)).output[row])
    assert torch.equal(edited(Add(STREAM, direction, 0.0)).output, PLAIN.output)


MISFITS: dict[str, Edit] = {
    "is called decoder.7.mlp.out": Scale("decoder.7.mlp.out"),
    "has no head 3: there are 3": Scale(OUT, head=3),
    "is not divided into heads": Scale("decoder.0.mlp.out", head=1),
    "has no key 6: there are 6": SetCell(MASK, None, 6, False),
    "holds no weights": RemoveKey(MASK, 0),
    "which is torch.bool": Scale(MASK),
    "has the shape": Replace("decoder.0.resid_pre", torch.zeros(2, 7, 12)),
    "mask has the shape \\(1, 1, 6, 6\\), not \\(5, 6\\)": mask_of(MASK, TRIANGLE[1:]),
    "has no numbers|no numbers that have a mean": Mean(MASK),
    "weights has no query 6": SetCell(WEIGHTS, 6, 0),
    "is torch.bool, not 0.5": SetCell(MASK, 0, 0, 0.5),
    "is torch.float64, not True": SetCell(WEIGHTS, 0, 0, True),
    "has no position 6": ReplaceAt(STREAM, 6, torch.zeros(12)),
    "has the shape \\(12,\\), not \\(5,\\)": ReplaceAt(STREAM, 0, torch.zeros(5)),
    "resid_post has the shape \\(2, 6, 12\\), not \\(5,\\)": Add(STREAM, torch.zeros(5)),
    "An edit made torch.float": Add(MASK, torch.ones(6)),
}


def test_an_edit_that_cannot_be_made_says_why() -> None:
    for words, edit in MISFITS.items():
        with pytest.raises(EditError, match=words):
            edited(edit)
    with pytest.raises(EditError, match=r"decoder\.9\.q"):
        edited(Scale(f"{FIRST}.q"), Scale("decoder.9.q"))
    assert edited(Scale("decoder.*.mlp.out")).sites == PLAIN.sites

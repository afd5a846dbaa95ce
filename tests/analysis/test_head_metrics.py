"""Head statistics: counted by hand, and what must hold for every head."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from explorer.analysis.head_metrics import (
    METRICS,
    Ranked,
    Tokens,
    join_layers,
    metrics_by_layer,
    metrics_of_heads,
    pattern_cells,
    ranking,
)
from explorer.catalog import opened_model
from explorer.inference import forward_pass as passes
from explorer.inference.forward_pass import ForwardPass, run_text
from models.masking import causal_mask

ALL = torch.ones(1, 1, dtype=torch.bool)


def causal(tokens: int) -> Tensor:
    return causal_mask(tokens)[0, 0]


def text(*ids: int, special: tuple[int, ...] = ()) -> Tokens:
    """Tokens by their numbers; `special` are the places of those that are no part of the text."""
    return Tokens(torch.tensor(ids), torch.tensor([at in special for at in range(len(ids))]))


def numbers(
    weights: Tensor,
    visible: Tensor = ALL,
    *,
    rows: Tokens | None = None,
    columns: Tokens | None = None,
    same_text: bool = True,
) -> dict[str, float]:
    """The statistics of a single head (q, k); without a text no token comes twice."""
    rows = rows or text(*range(weights.shape[0]))
    columns = columns or (rows if same_text else text(*range(weights.shape[1])))
    cells = pattern_cells(rows, columns, visible, same_text=same_text)
    found = metrics_of_heads(weights[None], visible, columns.special, cells, same_text=same_text)
    return {name: float(value) for name, value in found.items()}


def test_a_head_counted_by_hand() -> None:
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    found = numbers(weights, causal(3), rows=text(7, 8, 9, special=(0,)))
    log2 = math.log(2)
    assert found["entropy"] == pytest.approx((0 + log2 + 1.5 * log2) / 3)
    assert found["spread"] == pytest.approx((1 + 1.5 * log2 / math.log(3)) / 2)
    assert found["largest"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["distance"] == pytest.approx((0 + 0.5 + 0.25 * 2 + 0.25) / 3)
    assert found["first"] == found["special"] == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert found["itself"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["previous"] == pytest.approx((0.5 + 0.25) / 2)
    assert found["diagonal"] == pytest.approx((0.5 + 0.5) / 2)
    assert found["anti_diagonal"] == pytest.approx(0.25), "the other row may not see its key"


A, B, C, END = 1, 2, 3, 9


def test_an_induction_head_and_a_duplicate_head() -> None:
    repeated = text(A, B, C, A, B)
    induction, duplicate = torch.eye(5), torch.eye(5)
    induction[3] = torch.eye(5)[1]  # behind the first A stands B
    induction[4] = torch.eye(5)[2]
    duplicate[3], duplicate[4] = torch.eye(5)[0], torch.eye(5)[1]
    followed = numbers(induction, causal(5), rows=repeated)
    assert (followed["induction"], followed["duplicate"]) == (1, 0)
    found = numbers(duplicate, causal(5), rows=repeated)
    assert (found["induction"], found["duplicate"]) == (0, 1)
    thrice = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    found = numbers(thrice, causal(3), rows=text(A, A, A))
    assert found["duplicate"] == pytest.approx((0.5 + 0.5) / 2), "every earlier copy counts"
    assert found["induction"] == pytest.approx((0.5 + 0.8) / 2), "also the token itself follows one"


def test_without_a_copy_in_sight_there_is_no_induction() -> None:
    """A special token is no repeated word."""
    window = causal(4) & ~causal(4).tril(-2)  # only the token before, and itself
    assert math.isnan(numbers(torch.eye(4), window, rows=text(A, B, C, A))["duplicate"])
    found = numbers(torch.eye(4), causal(4), rows=text(END, A, B, END, special=(0, 3)))
    assert math.isnan(found["induction"])
    assert math.isnan(found["duplicate"])


def test_between_two_texts_the_words_of_the_shorter_one_count_and_nothing_is_far() -> None:
    source, written = text(A, B, C, END, special=(3,)), text(C, B, A, END, special=(3,))
    backwards = torch.zeros(4, 4)
    backwards[[0, 1, 2, 3], [2, 1, 0, 3]] = 1
    found = numbers(backwards, rows=written, columns=source, same_text=False)
    assert found["anti_diagonal"] == 1
    assert found["diagonal"] == pytest.approx(1 / 3)
    missing = {name for name, value in found.items() if math.isnan(value)}
    assert missing == {"distance", "itself", "previous", "induction", "duplicate"}
    for queries, keys in ((2, 5), (5, 2), (1, 1)):
        shorter = range(min(queries, keys))
        weights = torch.zeros(queries, keys)
        weights[list(shorter), [keys - 1 - i for i in shorter]] = 1
        assert numbers(weights, same_text=False)["anti_diagonal"] == 1, (queries, keys)


def test_heads_are_ranked_and_those_that_read_alike_share_a_place() -> None:
    values = torch.tensor([[0.5, math.nan], [0.9, 0.5]])
    best, *equal = ranking(values)
    assert (best.place, best.layer, best.head) == (1, 1, 0)
    assert equal == [Ranked(2, 0, 0, 0.5), Ranked(2, 1, 1, 0.5)]
    lowest = ranking(values, highest=False)
    assert [(each.layer, each.head) for each in lowest] == [(0, 0), (1, 1), (1, 0)]
    found = ranking(torch.tensor([[0.99991, 0.99994], [0.99, 0.98]]))
    assert [(each.place, each.head) for each in found] == [(1, 1), (1, 0), (3, 0), (4, 1)]


def test_heads_that_look_everywhere_at_themselves_or_at_the_token_before() -> None:
    for tokens in (2, 5, 48):
        everywhere = numbers(torch.full((tokens, tokens), 1 / tokens))
        assert everywhere["spread"] == pytest.approx(1)
        assert everywhere["entropy"] == pytest.approx(math.log(tokens))
        back = causal(tokens).float()
        looking_back = numbers(back / back.sum(-1, keepdim=True), causal(tokens))
        assert looking_back["spread"] == pytest.approx(1)
        itself = numbers(torch.eye(tokens))
        assert (itself["entropy"], itself["spread"], itself["distance"]) == (0, 0, 0)
        assert (itself["itself"], itself["largest"], itself["previous"]) == (1, 1, 0)
        assert itself["first"] == pytest.approx(1 / tokens)
    before = torch.eye(6).roll(-1, dims=1)
    before[0] = torch.eye(6)[0]
    found = numbers(before, causal(6))
    assert found["previous"] == 1
    assert found["distance"] == pytest.approx(5 / 6)


def test_rows_that_see_nothing_are_left_out_and_a_single_key_leaves_no_choice() -> None:
    weights = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    visible = torch.tensor([[False, False], [True, True]])
    found = numbers(weights, visible)
    assert (found["spread"], found["first"], found["itself"]) == pytest.approx((1, 0.5, 0.5))
    assert found["previous"] == pytest.approx(0.5)
    nothing = numbers(torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.bool))
    assert all(math.isnan(value) for value in nothing.values())
    special = numbers(weights, visible, rows=text(A, B, special=(0, 1)))
    assert (special["special"], math.isnan(special["diagonal"])) == (1, True), "no text at all"
    single = numbers(torch.ones(1, 1))
    assert math.isnan(single["spread"])
    assert math.isnan(single["previous"])
    assert single["entropy"] == 0


# ---- of a reading ----------------------------------------------------------------------


@pytest.fixture
def forward(small_models: Path) -> ForwardPass:
    opened = opened_model.opened_from(small_models / "translation", "translation")
    return run_text(opened, "the black cat sleeps")


def test_every_kind_of_attention_is_measured_layer_by_layer(
    forward: ForwardPass, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in forward.parts:
        whole = join_layers(list(metrics_by_layer(forward, part.name)))
        assert whole.values["spread"].shape == (part.layers, part.heads)
        assert (whole.rows, whole.fully_masked) == (len(forward.rows(part.name)), 0)
        with monkeypatch.context() as patch:
            patch.setattr(passes, "WEIGHTS_HELD", 1)
            alone = join_layers(list(metrics_by_layer(forward, part.name)))
        for name in METRICS:
            assert torch.allclose(whole.values[name], alone.values[name], equal_nan=True)


def test_special_tokens_are_those_of_the_columns_and_blind_rows_are_counted(
    forward: ForwardPass, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = "encoder.self_attn"
    (found,) = metrics_by_layer(forward, part)
    special = torch.tensor([token.special for token in forward.source])
    assert special.any()
    by_hand = forward.all_weights(part)[0][..., special].sum(-1).mean(-1)
    assert torch.allclose(found.values["special"][0].float(), by_hand)
    mask = torch.ones(len(special), len(special), dtype=torch.bool)
    mask[0] = False
    monkeypatch.setattr(type(forward), "mask", lambda self, part, layer=0: mask)
    (found,) = metrics_by_layer(forward, part)
    assert (found.rows, found.fully_masked) == (len(special), 1)


def test_what_a_metric_leaves_out_is_not_counted(forward: ForwardPass) -> None:
    part = "decoder.self_attn"
    found = join_layers(list(metrics_by_layer(forward, part)))
    rows, same = len(forward.target), forward.part(part).layers
    choosing = int((forward.mask(part).sum(-1) > 1).sum())
    assert choosing < rows
    for name, counted in {"entropy": rows, "previous": rows - 1, "spread": choosing}.items():
        assert found.counted[name].tolist() == [counted] * same, name
    copies = sum(
        token.id in [before.id for before in forward.target[:at]] and not token.special
        for at, token in enumerate(forward.target)
    )
    assert found.counted["duplicate"].tolist() == [copies] * same

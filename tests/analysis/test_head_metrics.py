"""Numbers of a head: counted by hand, and what must hold for every head."""

import dataclasses
import gc
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis import head_similarity, thumbnails
from explorer.analysis.circuits import head_scores
from explorer.analysis.circuits.top_lines import LineActivations, activations_by_batch
from explorer.analysis.head_circuits import composition, unrelated
from explorer.analysis.head_formation import formation_step, formations
from explorer.analysis.head_metrics import (
    METRICS,
    HeadRank,
    Tokens,
    join_layers,
    metrics_by_layer,
    metrics_of_heads,
    pattern_cells,
    ranking,
)
from explorer.analysis.head_similarity import (
    divergence_matrix,
    js_divergence,
    pairwise_divergence,
    rows_compared,
    rows_of_heads,
    similarity_order,
)
from explorer.analysis.logit_attribution import contributions
from explorer.catalog import opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.text import word_tokenizer
from explorer.text.token import DECODER
from models.trace import trace
from tests.analysis.kinds_of_model import KINDS_OF_MODEL
from tests.closeness import assert_close_to
from tests.components.samples import causal, heads
from tests.tiny import saved_and_opened

ALL = torch.ones(1, 1, dtype=torch.bool)


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
        shorter, weights = range(min(queries, keys)), torch.zeros(queries, keys)
        weights[list(shorter), [keys - 1 - i for i in shorter]] = 1
        assert numbers(weights, same_text=False)["anti_diagonal"] == 1, (queries, keys)


def test_heads_are_ranked_and_those_that_read_alike_share_a_place() -> None:
    values = torch.tensor([[0.5, math.nan], [0.9, 0.5]])
    best, *equal = ranking(values)
    assert (best.place, best.layer, best.head) == (1, 1, 0)
    assert equal == [HeadRank(2, 0, 0, 0.5), HeadRank(2, 1, 1, 0.5)]
    lowest = ranking(values, highest=False)
    assert [(each.layer, each.head) for each in lowest] == [(0, 0), (1, 1), (1, 0)]
    found = ranking(torch.tensor([[0.99991, 0.99994], [0.99, 0.98]]))
    assert [(each.place, each.head) for each in found] == [(1, 1), (1, 0), (3, 0), (4, 1)]


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


def test_the_docs_have_a_row_for_each() -> None:
    table = (Path(__file__).parents[2] / "docs/concepts/attention.md").read_text("utf-8")
    titles = [each.title.lower() for each in METRICS.values()]
    assert [title for title in titles if f"\n| {title} |" not in table] == []


@pytest.fixture
def forward(small_models: Path) -> ForwardPass:
    opened = opened_model.open_checkpoint(small_models / "translation", "translation")
    return run_text(opened, "the black cat sleeps")


def test_each_attention_is_measured(forward: ForwardPass, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in forward.parts:
        whole = join_layers(list(metrics_by_layer(forward, part.name)))
        assert whole.values["spread"].shape == (part.layers, part.heads)
        assert (whole.rows, whole.fully_masked) == (len(forward.rows(part.name)), 0)
        with monkeypatch.context() as patch:
            patch.setattr(forward_pass, "WEIGHTS_HELD", 1)
            alone = join_layers(list(metrics_by_layer(forward, part.name)))
        for name in METRICS:
            assert_close_to(whole.values[name], alone.values[name])


def test_special_tokens_are_of_columns_and_left_out_rows_not_counted(forward: ForwardPass) -> None:
    part = "encoder.self_attn"
    (found,) = metrics_by_layer(forward, part)
    special = torch.tensor([token.special for token in forward.source])
    assert special.any()
    by_hand = forward.all_weights(part)[0][..., special].sum(-1).mean(-1)
    assert_close_to(found.values["special"][0].float(), by_hand)
    part = "decoder.self_attn"
    found = join_layers(list(metrics_by_layer(forward, part)))
    rows, same = len(forward.target), forward.part(part).layers
    choosing = int((forward.mask(part).sum(-1) > 1).sum())
    assert choosing < rows
    for name, counted in {"entropy": rows, "previous": rows - 1, "spread": choosing}.items():
        assert found.counted[name].tolist() == [counted] * same, name
    ids = [token.id for token in forward.target if not token.special]
    copies = sum(number in ids[:at] for at, number in enumerate(ids))
    assert found.counted["duplicate"].tolist() == [copies] * same


def test_a_head_forms_where_its_highest_score_stays_at_half_its_end() -> None:
    for scores, step in [
        ([(0, 0.1), (1, 0.1), (5, 0.45), (10, 0.8)], 5),
        ([(0, 0.9), (1, 0.1), (5, 0.5), (10, 0.8)], 5),
        ([(0, 0.8), (1, 0.8), (5, 0.8)], None),
        ([(0, 0.0), (1, 0.0), (5, 0.8)], None),
        ([(0, 0.1), (1, 0.5), (5, math.nan)], None),
        ([(0, math.nan), (1, 0.5), (5, 0.6)], 1),
    ]:
        assert formation_step(scores) == step, scores

    def at(first: float, second: float) -> dict[str, Tensor]:
        scores = {"previous": [[first, 0.1]], "induction": [[second, math.nan]]}
        return {name: torch.tensor(values) for name, values in scores.items()}

    (found,) = formations({0: at(0.0, 0.0), 5: at(0.2, 0.6), 10: at(0.4, 0.7)})
    assert (found.layer, found.head, found.score, found.step) == (0, 0, "induction", 5)
    assert found.final == pytest.approx(0.7)


@given(some.integers(2, 6), some.integers(1, 7), some.integers(1, 9), some.integers(0, 9999))
def test_what_holds_for_all_heads(n: int, queries: int, keys: int, seed: int) -> None:
    weights = heads(n, queries, keys, seed=seed)
    found = divergence_matrix(list(pairwise_divergence(weights)))
    assert torch.equal(found, found.T)
    assert bool((found.diagonal() == 0).all())
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    same = torch.eye(keys)
    ends = js_divergence(same, torch.stack([same, same.roll(1, 1)])).tolist()
    assert ends == pytest.approx([0, float(keys > 1)])
    for at in range(n):
        expected = [_by_kl(weights[at], other) for other in weights]
        assert found[at].tolist() == pytest.approx(expected, abs=2e-5)


def _by_kl(one: Tensor, other: Tensor) -> float:
    """Half the KL divergence, in bits, of each to the mean of both."""
    pair = torch.stack([one, other]).double()
    logs = pair.mean(0).log().expand_as(pair)
    kl = F.kl_div(logs, pair, reduction="none").nansum((0, 2)) / 2
    return float(kl.mean() / math.log(2))


def test_heads_that_are_alike_stand_together_and_what_is_no_number_stays_none() -> None:
    kinds = torch.eye(6)[None], torch.eye(6).roll(1, 1)[None], torch.full((1, 6, 6), 1 / 6)
    weights = torch.cat([kinds[at % 3] for at in range(9)])
    order = similarity_order(divergence_matrix(list(pairwise_divergence(weights))))
    assert sorted(order) == list(range(9))
    assert [len({at % 3 for at in order[i : i + 3]}) for i in (0, 3, 6)] == [1, 1, 1]
    assert similarity_order(torch.zeros(0, 0)) == []
    assert similarity_order(torch.zeros(1, 1)) == [0]
    weights = heads(3, 4, 4, seed=1)
    weights[1, 0, 0] = math.nan
    found = divergence_matrix(list(pairwise_divergence(weights)))
    assert found.isnan().tolist() == [[False, True, False], [True] * 3, [False, True, False]]
    assert sorted(similarity_order(found)) == [0, 1, 2]


def test_of_much_only_some_is_compared(letters: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, part = run_text(letters, "the cat and the hat"), "decoder.self_attn"
    keys = len(forward.target)
    assert rows_compared(forward, part) == tuple(range(keys))
    found = torch.cat(list(rows_of_heads(forward, part, range(keys))))
    assert_close_to(found, forward.all_weights(part).flatten(0, 1))
    monkeypatch.setattr(head_similarity, "CELLS_COMPARED", 8 * 8 // 2 * keys * 3)
    some = (0, round((keys - 1) / 2), keys - 1)
    assert rows_compared(forward, part) == some
    assert_close_to(torch.cat(list(rows_of_heads(forward, part, some))), found[:, list(some)])
    monkeypatch.setattr(head_similarity, "HEADS_COMPARED", 12)
    assert head_similarity.layers_compared(9, 4) == (0, 4, 8)
    assert head_similarity.layers_compared(3, 4) == (0, 1, 2)


def test_pooling_keeps_the_largest() -> None:
    for shape in [(1, 1, 5, 9), (2, 3, 33, 64), (1, 2, 128, 128), (1, 1, 1, 1)]:
        weights = heads(*shape)
        small = thumbnails.thumbnails_of_weights(weights)
        assert max(small.cells.shape[2:]) <= thumbnails.THUMBNAIL_SIDE
        largest = F.max_pool2d(weights, small.pooled, ceil_mode=True)
        assert torch.equal(small.cells, largest), shape


def test_thumbnails_last_as_a_reading(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = opened_model.open_checkpoint(small_models / "translation", "translation")
    read = dataclasses.replace(forward_pass.run_text(opened, opened.example))  # kept by nobody else
    monkeypatch.setattr(forward_pass, "WEIGHTS_HELD", 1)
    for part in read.parts:
        whole = read.all_weights(part.name)
        found = thumbnails.thumbnails_of(read, part.name)
        assert_close_to(found.cells, thumbnails.thumbnails_of_weights(whole).cells)
        assert thumbnails.thumbnails_of(read, part.name) is found
    made = weakref.ref(found)
    del found
    gc.collect()
    assert made() is not None
    del read
    gc.collect()
    assert made() is None


LINES = ("the cat", "a black dog eats", "the white cat sleeps not", "le chat noir", "a dog")
KINDS: dict[str, dict[str, Any]] = {"no padding": {"pad_id": None}}
KINDS |= {name: KINDS_OF_MODEL[name] for name in ("decoder", "grouped", "mean")}


@pytest.mark.parametrize("kind", list(KINDS))
def test_both_numbers_are_those_of_each_line_alone(kind: str, tmp_path: Path) -> None:
    opened = saved_and_opened(tmp_path, "lines", shaken_by=0.4, dtype=torch.float64, **KINDS[kind])
    config, rows = opened.config, [opened.tokenizer.encode(line) for line in LINES]
    layers = config.n_layers
    found = LineActivations.empty(len(rows), layers, config.n_heads)
    for lines, tokens in activations_by_batch(opened, rows):
        found.put(lines, tokens)
    assert bool(found.measured.all())
    stack = config.stacks[0]
    for line, row in enumerate(rows):
        seen = trace(opened.model, torch.tensor([[token.id for token in row]]))
        counted = [at for at, token in enumerate(row) if at and not token.special]
        for layer in range(layers):
            block: Any = opened.model.last_stack.blocks[layer]
            for head in range(config.n_heads):
                w = config.head_width
                columns = block.self_attn.o_proj.weight[:, head * w : (head + 1) * w]
                out = seen[f"{stack}.{layer}.self_attn.head_out"][0, head]
                norms = (out @ columns.T).norm(dim=-1)[counted]
                weights = seen[f"{stack}.{layer}.self_attn.weights"][0, head]
                away = weights[counted][:, counted].amax(-1)
                at = line, layer, head
                assert float(found.norm[at]) == pytest.approx(float(norms.max()), rel=1e-5)
                assert int(found.norm_at[at]) == counted[int(norms.argmax())]
                assert float(found.weight[at]) == pytest.approx(float(away.max()), rel=1e-5)
                assert int(found.weight_at[at]) == counted[int(away.argmax())]


def test_a_sequence_is_different_tokens_twice_with_what_stands_around_every_text() -> None:
    for name in ("induction", "shakespeare", "reviews"):
        opened = opened_model.open_model(name)
        rows = head_scores.repeated_random_tokens(opened)
        assert len(rows) == head_scores.ROWS
        text = opened.tokenizer.encode(opened.example)
        for row in rows:
            own = [token.id for token in row if not token.special]
            half = len(own) // 2
            assert own[:half] == own[half:]
            assert len(set(own)) == half > 5
            assert len(row) <= opened.config.max_len
            assert row[0].special == text[0].special
            assert row[-1].special == text[-1].special
        assert rows == head_scores.repeated_random_tokens(opened)
        assert rows != head_scores.repeated_random_tokens(opened, seed=1)


def test_induction_heads_are_found_and_their_keys_compose_with_the_previous_token_heads() -> None:
    opened = opened_model.open_model("induction")
    scores = head_scores.standard_scores(opened)
    assert float(scores["induction"][1].min()) > 0.6
    assert float(scores["induction"][0].max()) < 0.1
    assert float(scores["previous"][0].min()) > 3 * float(scores["previous"][1].max())
    for head in range(2):
        q, k, v = composition(opened.model, 1, head) / unrelated(opened.config.d_model)
        assert float(k.min()) > 1.5
        assert float(torch.stack([q, v]).max()) < 1.0


def test_names_are_moved_as_attribution_says(tmp_path: Path) -> None:
    """In a shaken decoder that knows the names."""
    prompt_words = "When and went to the store , gave a drink".split()
    words = word_tokenizer([*prompt_words, *head_scores.NAMES], DECODER)
    how: dict[str, Any] = {"shaken_by": 0.4, "dtype": torch.float64, "n_layers": 2}
    names = saved_and_opened(tmp_path, "names", words, "When Mary", **how)
    prompts, found = head_scores.name_prompts(names), head_scores.name_moving(names)
    assert found is not None
    assert len(prompts) == found.prompts == len(head_scores.NAMES)
    part, raised, weight = "decoder.self_attn", [], []
    for prompt in prompts:
        forward = forward_pass.run_text(names, prompt.text)
        place = len(forward.tokens) - 1
        asked, other = (contributions(forward, place, name) for name in prompt.names)
        for_asked = asked.heads[part] - other.heads[part]
        seen = forward.all_weights(part)[:, :, place]
        on = [seen[..., prompt.places(name)].sum(-1) for name in prompt.names]
        assert [len(prompt.places(name)) for name in prompt.names] == [1, 2]
        raised.append(torch.where(on[0] >= on[1], for_asked, -for_asked))
        weight.append(torch.maximum(*on))
    assert_close_to(found.raised, torch.stack(raised).mean(0))
    assert_close_to(found.weight, torch.stack(weight).mean(0))


def test_a_model_without_the_names_or_room_has_no_score(tmp_path: Path) -> None:
    for name in ("induction", "reviews"):
        assert head_scores.name_moving(opened_model.open_model(name)) is None
    opened = saved_and_opened(tmp_path, "little", word_tokenizer(["cat"], DECODER), max_len=1)
    assert head_scores.repeated_random_tokens(opened) == []
    assert all(bool(each.isnan().all()) for each in head_scores.standard_scores(opened).values())
    assert head_scores.name_moving(opened) is None

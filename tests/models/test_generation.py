"""Writing: cached or not, alone or in a batch, it is the same text."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from models.config import POSITIONS, GenerationConfig
from models.generation import GenerationStep, generate
from models.model import Transformer
from models.sampling import Sampling, choose_from, keep_top_k, keep_top_p
from tests.closeness import assert_close_to as close
from tests.grids import grid
from tests.tiny import config_of, ids_of, keep_of_lengths, shaken

pytestmark = pytest.mark.usefixtures("shapes_unchecked")


def writer(kind: str = "decoder", **changes: Any) -> Transformer:
    return shaken(config_of(kind, **({"bos_id": 1} | changes)))


def written(steps: list[GenerationStep]) -> Tensor:
    return torch.stack([step.ids for step in steps], 1)


@grid("kind, positions", ("decoder", "encoder-decoder"), POSITIONS)
def test_a_batch_is_its_texts_one_by_one(kind: str, positions: str) -> None:
    model = writer(kind, positions=positions)
    lengths, prompt = [5, 1, 3], ids_of(3, 5)
    keep = keep_of_lengths(lengths, 5, "left")
    together = written(list(generate(model, prompt * keep, max_length=6, greedy=True)))
    for row, length in enumerate(lengths):
        alone = generate(model, prompt[row : row + 1, 5 - length :], max_length=6, greedy=True)
        assert torch.equal(written(list(alone))[0], together[row])


def test_the_seed_decides_without_dropout_and_the_random_state_is_left_alone() -> None:
    model, prompt = writer(dropout=0.9).train(), ids_of(3, 2)
    before = torch.get_rng_state()
    one = model.generate(prompt, max_length=12, seed=1)
    assert model.training
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    assert torch.equal(one, model.generate(prompt, max_length=12, seed=1))
    assert not torch.equal(one, model.generate(prompt, max_length=12, seed=2))


def saying(ids: list[int], **changes: Any) -> Transformer:
    """A decoder without positions that answers each token with a fixed next one."""
    config = config_of("decoder", d_model=24, n_heads=2, positions="none", **changes)
    model = Transformer(config.replace(d_ff=0, final_norm=False, vocab_size=len(ids)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.last_stack.embedding.weight[: len(ids), : len(ids)] = torch.eye(len(ids))
        weight: Any = model.head.weight if model.head is not None else None
        for before, after in enumerate(ids):
            weight[after, before] = 9.0
    return model.eval()


def test_writing_stops_at_the_end_token_and_fills_up_with_padding() -> None:
    model = saying([0, 0, 3, 4, 5, 5], pad_id=0, generation=GenerationConfig(eos_ids=(5,)))
    steps = list(generate(model, torch.tensor([[4], [2], [3]]), greedy=True))
    assert written(steps).tolist() == [[5, 0, 0], [3, 4, 5], [4, 5, 0]]
    assert [step.finished.int().tolist() for step in steps] == [[1, 0, 0], [1, 0, 1], [1, 1, 1]]
    unpadded = saying([0, 0, 3, 4, 5, 1], pad_id=None, generation=GenerationConfig(eos_ids=(5,)))
    ids = unpadded.generate(torch.tensor([[4], [2]]), greedy=True)
    assert ids.tolist() == [[4, 5, 5, 5], [2, 3, 4, 5]], "without padding the end is repeated"


@grid("kind, positions, use_cache", ("decoder", "encoder-decoder"), POSITIONS, (True, False))
def test_writing_stops_where_positions_end(kind: str, positions: str, use_cache: bool) -> None:
    """`max_len` tokens are read and one more is written."""
    model = writer(kind, positions=positions, max_len=7)
    steps = list(generate(model, ids_of(2, 5), max_length=50, use_cache=use_cache))
    assert len(steps) == (3 if kind == "decoder" else 7)
    assert len(list(generate(model, ids_of(2, 7), max_length=1, use_cache=use_cache))) == 1


LOGITS = torch.randn(6, 11, generator=torch.Generator().manual_seed(1)).double() * 2
LOGITS[0] = 0.0
LOGITS[1, 3:7] = LOGITS[1].max()
CHANCES = LOGITS.softmax(-1)


def test_top_k_by_brute_force() -> None:
    for k in (1, 2, 5, 11, 40):
        for kept, row in zip(keep_top_k(CHANCES, k), CHANCES, strict=True):
            assert (kept > 0).sum() == min(k, 11)
            close(kept.sort(descending=True).values[:k], row.sort(descending=True).values[:k])
            assert (kept[kept > 0] == row[kept > 0]).all()


def test_top_p_by_brute_force() -> None:
    for p in (1e-9, 0.1, 0.5, 0.9, 0.999):
        for kept, row in zip(keep_top_p(CHANCES, p), CHANCES.tolist(), strict=True):
            nucleus: list[int] = []
            for token in sorted(range(11), key=lambda token: (-row[token], token)):
                if sum(row[other] for other in nucleus) >= p:
                    break
                nucleus.append(token)
            assert kept.nonzero()[:, 0].tolist() == sorted(nucleus)
            close(kept[nucleus], torch.tensor(row, dtype=torch.float64)[nucleus])
    halves = torch.tensor([[0.25, 0.5, 0.25]])
    assert keep_top_p(halves, 0.5).tolist() == [[0, 0.5, 0]], "it stops as soon as it is reached"
    assert keep_top_p(halves, 0.75).tolist() == [[0.25, 0.5, 0]], "the lower id of equals"


def test_probabilities_follow_from_temperature_top_k_and_top_p_in_this_order() -> None:
    close(choose_from(LOGITS, Sampling()), LOGITS.softmax(-1))
    close(choose_from(LOGITS, Sampling(0.5)), (2 * LOGITS).softmax(-1))
    expected = keep_top_p(keep_top_k((LOGITS / 2).softmax(-1), 5), 0.6)
    close(choose_from(LOGITS, Sampling(2.0, 5, 0.6)), expected / expected.sum(-1, keepdim=True))
    for temperature in (0, 1e-3, 1e-38, 5e-324, 1e9):
        probabilities = choose_from(LOGITS.float(), Sampling(temperature))
        close(probabilities.sum(-1), torch.ones(6))
        if temperature < 1e-9:
            assert (probabilities.argmax(-1) == LOGITS.argmax(-1)).all()


def test_a_meaningless_choice_is_refused_before_the_first_step() -> None:
    model, ids = writer(), ids_of(1, 2)
    on_the_left = "A prompt ends in padding: put it on the left"
    nothing = torch.zeros(1, 2, dtype=torch.long)
    padded, all_padding = torch.cat((ids, nothing), 1), "A prompt is all padding: "
    keep_shape = "keep and the prompt must have one shape, not "
    can_write = "Only a decoder with a language-model head"
    refused: list[tuple[Transformer, Tensor, dict[str, Any], str]] = [
        (model, ids, {"max_length": 0}, "max_length must be at least 1, not 0."),
        (model, ids, {"seed": 10**20}, "seed must be between 0 and 9,223,372,036,854,775,807"),
        (model, ids[:, :0], {}, "A prompt has 1 to 16 tokens, not"),
        (model, ids_of(1, 17), {}, "A prompt has 1 to 16 tokens, not"),
        (model, padded, {}, on_the_left),
        (model, ids, {"keep": keep_of_lengths([1], 2)}, on_the_left),
        (model, nothing, {}, all_padding + "it needs at least one other token."),
        (model, torch.cat((nothing, ids)), {}, all_padding),
        (model, ids, {"keep": ids == 0}, all_padding),
        (model, ids, {"keep": keep_of_lengths([3], 3)}, keep_shape + r"\(1, 3\) and \(1, 2\)."),
        (model, ids, {"keep": keep_of_lengths([2, 2], 2)}, keep_shape),
        (writer("encoder-decoder"), ids, {"keep": keep_of_lengths([1], 1)}, keep_shape),
        (Transformer(config_of("encoder")), ids, {}, can_write),
        (Transformer(config_of("decoder", head="none")), ids, {}, can_write),
    ]
    for chosen, prompt, how, sentence in refused:
        with pytest.raises(ValueError, match=sentence):
            generate(chosen, prompt, **how)


def test_sampling_is_refused_outside_of_its_bounds() -> None:
    nan, inf, huge = math.nan, math.inf, 10**400
    wrong: dict[str, tuple[Any, ...]] = {
        "temperature": (-1, nan, inf, -inf, huge, -huge, True, np.True_, "hot", np.float32(-1)),
        "top_k": (0, -huge, huge, 2.5, inf, True, np.int64(3)),
        "top_p": (0, 0.0, 1.5, nan, inf, huge, True, np.float32(1.5), Fraction(huge)),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=rf"^{name} must be .{{,90}}\.$"):
                generate(writer(), ids_of(1, 2), **{name: value})
    of_libraries: dict[str, Any] = {"temperature": np.float32(0.5), "top_p": Fraction(3, 4)}
    ids = writer().generate(ids_of(1, 2), **of_libraries)
    assert torch.equal(ids, writer().generate(ids_of(1, 2), temperature=0.5, top_p=0.75))


def test_no_prompt_gets_no_text_and_padding_that_counts_is_continued() -> None:
    for kind in ("decoder", "encoder-decoder"):
        assert len(writer(kind).generate(ids_of(1, 3)[:0])) == 0
    prompt = torch.zeros(1, 1, dtype=torch.long)
    assert len(list(generate(writer(), prompt, keep=prompt == 0, max_length=3))) == 3


def test_an_encoder_decoder_begins_with_its_start_token() -> None:
    for bos, start in ((2, 2), (None, 0)):
        ids = writer("encoder-decoder", bos_id=bos).generate(ids_of(3, 4), 3, greedy=True)
        assert (ids[:, 0] == start).all()

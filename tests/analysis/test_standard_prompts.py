"""Scores on standard prompts: what they are made of, and that known heads are found by them."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.head_composition import composition, unrelated
from explorer.analysis.logit_attribution import contributions
from explorer.analysis.name_moving import NAMES, name_moving, name_prompts
from explorer.analysis.standard_prompts import ROWS, repeated_random_tokens, standard_scores
from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.inference import forward_pass
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests.models.building import shake
from tests.shelf import put

PROMPT_WORDS = "When and went to the store , gave a drink".split()


def test_a_sequence_is_different_tokens_twice_with_what_stands_around_every_text() -> None:
    for name in ("induction", "shakespeare", "reviews"):
        opened = opened_model.open_model(name)
        rows = repeated_random_tokens(opened)
        assert len(rows) == ROWS
        text = opened.tokenizer.encode(opened.example)
        for row in rows:
            own = [token.id for token in row if not token.special]
            half = len(own) // 2
            assert own[:half] == own[half:]
            assert len(set(own)) == half > 5
            assert len(row) <= opened.config.max_len
            assert row[0].special == text[0].special
            assert row[-1].special == text[-1].special
        assert rows == repeated_random_tokens(opened)
        assert rows != repeated_random_tokens(opened, seed=1)


def test_the_induction_heads_are_found_and_their_keys_compose_with_the_previous_token_heads() -> (
    None
):
    opened = opened_model.open_model("induction")
    scores = standard_scores(opened)
    assert float(scores["induction"][1].min()) > 0.6
    assert float(scores["induction"][0].max()) < 0.1
    assert float(scores["previous"][0].min()) > 3 * float(scores["previous"][1].max())
    for head in range(2):
        q, k, v = composition(opened.model, 1, head) / unrelated(opened.config.d_model)
        assert float(k.min()) > 1.5
        assert float(torch.stack([q, v]).max()) < 1.0


@pytest.fixture
def names(tmp_path: Path) -> Opened:
    """A shaken decoder that knows the names."""
    tokenizer = word_tokenizer([*PROMPT_WORDS, *NAMES], DECODER)
    put(tmp_path, "names", tokenizer, "When Mary", n_layers=2, kind="decoder")
    opened = opened_model.opened_from(tmp_path / "names", "names")
    shake(opened.model.double(), by=0.4)
    return opened


def test_names_are_moved_as_attribution_says(names: Opened) -> None:
    prompts, found = name_prompts(names), name_moving(names)
    assert found is not None
    assert len(prompts) == found.prompts == len(NAMES)
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
    torch.testing.assert_close(found.raised, torch.stack(raised).mean(0))
    torch.testing.assert_close(found.weight, torch.stack(weight).mean(0))


def test_who_does_not_know_the_names_moves_none() -> None:
    for name in ("induction", "shakespeare", "reviews"):
        assert name_moving(opened_model.open_model(name)) is None


def test_a_model_that_reads_too_little_has_no_score(tmp_path: Path) -> None:
    put(tmp_path, "little", word_tokenizer(["cat"], DECODER), "cat", kind="decoder", max_len=1)
    opened = opened_model.opened_from(tmp_path / "little", "little")
    assert repeated_random_tokens(opened) == []
    assert all(bool(each.isnan().all()) for each in standard_scores(opened).values())
    assert name_moving(opened) is None

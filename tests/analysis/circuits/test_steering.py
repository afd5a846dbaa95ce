"""Curves over strengths and steered texts are those of passes with the direction added by hand."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.circuit_metrics import KL, LOGIT_DIFFERENCE, PROBABILITY
from explorer.analysis.circuits.steering import (
    STRENGTHS,
    over_places,
    over_strengths,
    steered_text,
    steered_values,
    steering_cost,
    steering_of,
)
from explorer.analysis.circuits.text_pairs import Question, TextPair, question_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint, open_model
from explorer.catalog.shipped import SHIPPED
from explorer.inference.core_edits import NotApplicableError, steering_direction
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.generation_limits import MAX_STEERED
from explorer.inference.model_inputs import ids_of
from explorer.interventions.edits import Steer
from models.interventions import Add
from models.trace import trace
from tests.closeness import assert_close_to as close
from tests.grids import grid

PAIRS = {
    "induction": [TextPair("abcdeabcdeab", "adcbeadcbeab"), TextPair("abcabcab", "acbacbab")],
    "negation": [
        TextPair("the food was really very good", "the food was not very good"),
        TextPair("the room was really very nice", "the room was not very nice"),
    ],
    "bert": [TextPair("the cat [MASK] good", "a dog [MASK] good")],
}


def example_question(
    name: str, published: Path, metric: str = LOGIT_DIFFERENCE
) -> tuple[OpenModel, Question]:
    opened = open_checkpoint((published if name == "bert" else SHIPPED) / name, name)
    return opened, question_of(opened, PAIRS[name], metric)


@grid("name, metric", ["induction", "negation", "bert"], [LOGIT_DIFFERENCE, PROBABILITY, KL])
def test_a_curve_is_a_pass_for_every_strength(name: str, metric: str, published: Path) -> None:
    """Of a decoder, a classifier and a masked language model; of texts and of a head."""
    opened, question = example_question(name, published, metric)
    part = run_text(opened, question.pairs[0].texts.clean).parts[0]
    for layer in range(part.layers):
        for head in (None, 1):
            steer = steering_of(question, part.name, layer, head, 1.0)
            steers = over_strengths(steer)
            found = steered_values(opened, question, steers)
            shape = (len(question.pairs), len(STRENGTHS))
            assert found.clean.shape == found.corrupted.shape == shape
            direction = steering_direction(opened, steer)
            site = f"{part.name.split('.')[0]}.{layer}.resid_post"
            for at, pair in enumerate(question.pairs):
                both = (pair.texts.clean, pair.texts.corrupted)
                for text, row in zip(both, (found.clean[at], found.corrupted[at]), strict=True):
                    ids = ids_of([run_text(opened, text).tokens])
                    segments = torch.zeros_like(ids) if name == "bert" else None
                    for strength in (-10.0, -0.5, 0.0, 3.0):
                        add = Add(site, direction, strength)
                        out = trace(opened.model, ids, segments=segments, edits=[add]).output
                        logits = out[:, pair.place] if out.dim() == 3 else out
                        expected = float(pair.outcome(logits))
                        got = float(row[STRENGTHS.index(strength)])
                        assert got == pytest.approx(expected, rel=1e-3, abs=1e-4)
                unchanged = float(found.clean[at, STRENGTHS.index(0.0)])
                assert unchanged == pytest.approx(pair.clean_value, abs=1e-5)
            assert steering_cost(opened, question, steers) > 0


def test_every_layer_and_every_head_has_its_own_direction(published: Path) -> None:
    opened, question = example_question("induction", published)
    layers, heads = opened.config.n_layers, opened.config.n_heads
    for head in (None, 0):
        steer = steering_of(question, "decoder.self_attn", 1, head, 2.0)
        places = over_places(opened, steer, layers, heads)
        assert len(places) == (layers if head is None else heads)
        together = steered_values(opened, question, places)
        for at, place in enumerate(places):
            alone = steered_values(opened, question, [place])
            close(together.clean[:, at], alone.clean[:, 0])
            close(together.corrupted[:, at], alone.corrupted[:, 0])
    same = Steer("decoder.self_attn", 0, None, 1.0, ("abab", "abab"))
    assert over_places(opened, same, layers, 1) == []


def test_a_steered_text_is_written_token_by_token_with_the_direction(small_models: Path) -> None:
    """As by a whole pass with the intervention for every token; without one as the model does."""
    opened = open_model("letters")
    steer = Steer("decoder.self_attn", 0, None, 6.0, ("the cat and", "hat hat the"))
    for added in (steer, None):
        ids = [token.id for token in run_text(opened, "the cat").target]
        begun = len(ids)
        room = min(MAX_STEERED, opened.config.max_len - begun + 1)
        edits = [Add("decoder.0.resid_post", steering_direction(opened, steer), 6.0)]
        for _ in range(room):
            passed = trace(opened.model, torch.tensor([ids]), edits=edits if added else [])
            ids.append(int(passed.output[0, -1].argmax()))
            if ids[-1] in opened.config.generation.eos_ids:
                break
        assert steered_text(opened, "the cat", added) == opened.tokenizer.decode(ids[begun:])
    shares: list[float] = []
    steered_text(opened, "the hat", steer, shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[-1] <= 1


def test_an_encoder_decoder_is_steered_while_it_writes(small_models: Path) -> None:
    opened = open_model("translation")
    plain = steered_text(opened, opened.example, None)
    for part in ("encoder.self_attn", "decoder.self_attn"):
        steer = Steer(part, 0, None, 20.0, (opened.example, "a"))
        assert steered_text(opened, opened.example, steer) != plain
    letters, reviews = open_model("letters"), open_model("reviews")
    with pytest.raises(NotApplicableError, match="has no length"):
        steered_text(letters, "the cat", Steer("decoder.self_attn", 0, None, 1.0, ("a", "a")))
    with pytest.raises(ForwardPassError, match="does not generate text"):
        steered_text(reviews, "the cat", None)

"""What the view Steering of the page Circuits shows: a direction, and what it does when added."""

import re
from dataclasses import replace
from urllib.parse import quote_plus

import torch
from torch import Tensor

from models import trace
from models.interventions import Replace
from tests.browser.truth.core import CHECKPOINTS, Case, tokenizer_in
from tests.browser.truth.screen import Claim, said
from tests.browser.visiting import Visitor
from tests.served import wait_until

CLEAN = Case(CHECKPOINTS / "induction", "abcdeabcdeab", "decoder", 1, "self_attn", 1)
CORRUPTED = replace(CLEAN, text="adcbeadcbeab")
ANSWERS = "c", "e"
STRENGTH = 1.5
NUMBER = r"[−\d.,]+"
ASKS = (
    f"{CLEAN.address}&corrupted={CORRUPTED.text}&answer_token={ANSWERS[0]}"
    f"&against_token={ANSWERS[1]}&steer_strength={STRENGTH}&circuit_view={quote_plus('Steering')}"
)
STREAM = "decoder.{}.resid_post"


def steering(visitor: Visitor) -> list[Claim]:
    """The lengths, every point of both charts, and both texts."""
    length = float(_direction(CLEAN.layer).norm())
    usual = float(CLEAN.seen[STREAM.format(CLEAN.layer)][0].norm(dim=-1).median())
    shown = said(
        visitor,
        rf"has norm ({NUMBER}) and the residual stream there ({NUMBER}) .*added is ({NUMBER}) %",
    )
    true = (length, usual, 100 * STRENGTH * length / usual)
    made = [Claim(str(at), *both) for at, both in enumerate(zip(shown, true, strict=True))]
    for at, *values in _told(visitor, "strength"):
        made += _claims(values, f"strength {at}", float(at.replace("−", "-")), CLEAN.layer)
    for at, *values in _told(visitor, "layer"):
        made += _claims(values, f"layer {at}", STRENGTH, int(at))
    assert len(made) == 3 + 2 * (23 + CLEAN.model.config.n_layers)
    text = _written()
    assert text.strip() in visitor.page.get_by_test_id("stMain").inner_text()
    return made


def _direction(layer: int) -> Tensor:
    clean, corrupted = (case.seen[STREAM.format(layer)][0, -1] for case in (CLEAN, CORRUPTED))
    return clean - corrupted


def _claims(shown: list[str], name: str, strength: float, layer: int) -> list[Claim]:
    """The difference of the two logits of each text whose stream has so much of it everywhere."""
    answer, against = (tokenizer_in(CLEAN.folder).encode(each)[-1].id for each in ANSWERS)
    made = []
    for case, text in zip((CLEAN, CORRUPTED), shown, strict=True):
        site = STREAM.format(layer)
        value = case.seen[site] + strength * _direction(layer)
        logits = trace(case.model, case.ids, edits=[Replace(site, value)]).output[0, -1]
        made.append(Claim(f"{name}: {case.text}", text, float(logits[answer] - logits[against])))
    return made


def _written() -> str:
    """What follows the corrupted text, each token by a whole pass."""
    ids = CORRUPTED.ids
    begun = ids.shape[1]
    for _ in range(min(24, CORRUPTED.model.config.max_len - begun + 1)):
        stream = trace(CORRUPTED.model, ids)[STREAM.format(CLEAN.layer)]
        steered = Replace(STREAM.format(CLEAN.layer), stream + STRENGTH * _direction(CLEAN.layer))
        logits = trace(CORRUPTED.model, ids, edits=[steered]).output[:, -1:]
        ids = torch.cat((ids, logits.argmax(-1)), 1)
    text: str = tokenizer_in(CORRUPTED.folder).decode(ids[0, begun:].tolist())
    return text


def _told(visitor: Visitor, over: str) -> list[tuple[str, ...]]:
    """What a chart says at each of its points."""
    marks = visitor.widget(f"steered_over_{over}").locator("svg [aria-label*='corrupted: ']")
    wait_until(lambda: marks.count() > 0, "the points of the chart", 60)
    told = rf"{over}: ({NUMBER}); clean: ({NUMBER}); corrupted: ({NUMBER})"
    found = []
    for label in marks.evaluate_all("all => all.map(mark => mark.getAttribute('aria-label'))"):
        read = re.search(told, label)
        assert read is not None, label
        found.append(read.groups())
    return found

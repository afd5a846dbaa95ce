"""Every view of every page shows the numbers of the model: read, and made again from the core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser

from explorer.runs.worker import work
from models import load_checkpoint
from tests.browser.truth import (
    beside,
    changing,
    core,
    deciding,
    finding,
    learning,
    looking,
    measured,
    mixing,
    others,
    placing,
    views,
    weighing,
)
from tests.browser.truth.screen import Claim, said
from tests.browser.truth.views import View
from tests.browser.visiting import Visitor
from tests.runs.making import tiny_run
from tests.served import Server
from tests.source import ROOT


def train(visitor: Visitor) -> list[Claim]:
    folder = ROOT / "models" / "checkpoints" / "reverse"
    model = load_checkpoint(folder).model
    visitor.drawn("watched")
    head, score = said(visitor, r"Layer 0, head (\d) · ([\d.]+) on the pattern")
    assert 0 <= int(head) < model.config.n_heads
    return [Claim("score on the pattern", score, core.reversing(folder, "reverse", int(head)))]


Truth = Callable[[Visitor], list[Claim]]
TRUTHS: dict[View, tuple[Truth, str]] = {
    ("start", ""): (looking.start, ""),
    ("tokens", ""): (looking.tokens, ""),
    ("learning", "Byte-level BPE"): (learning.byte_pairs, "&learn_rules=50&learn_step=0"),
    ("learning", "WordPiece"): (learning.wordpiece, "&learn_rules=50&learn_step=0"),
    ("learning", "Unigram"): (learning.unigram, "&learn_rules=50"),
    ("positions", "The scheme"): (placing.scheme, "&scheme=Sinusoidal"),
    ("positions", "Another order"): (placing.order, "&scheme=Sinusoidal"),
    ("positions", "Longer than trained"): (placing.longer, "&scheme=Sinusoidal&times=2+×"),
    ("positions", "A doubled exponent"): (placing.doubled, "&scheme=Sinusoidal"),
    ("attention", "Matrix"): (looking.attention, ""),
    ("attention", "Lines"): (looking.lines, ""),
    ("attention", "Tokens"): (looking.two_way, ""),
    ("heads", "Finder"): (mixing.finder, "&metric=Previous"),
    ("heads", "Likeness"): (mixing.likeness, ""),
    ("heads", "Rollout"): (mixing.rollout, ""),
    ("heads", "Flow"): (mixing.flow, ""),
    ("stages", ""): (looking.stages, f"&held=q{looking.QUERY}k{looking.KEY}"),
    ("pairs", ""): (looking.pairs, "&query=7+·+␣be&key=6+·+␣to"),
    ("lens", ""): (looking.lens, ""),
    ("walk", ""): (looking.walk, f"&stage={core.SITE}.weights"),
    ("writing", ""): (looking.writing, ""),
    ("decoding", "Token by token"): (deciding.token_by_token, deciding.asks()),
    ("decoding", "Beam search"): (
        deciding.beams,
        f"&beams={deciding.BEAMS}&length={deciding.LENGTH}&alpha={deciding.ALPHA}",
    ),
    ("decoding", "Teacher forcing"): (deciding.forcing, ""),
    ("masks", "I am a student"): (looking.student, ""),
    ("masks", "Your sentence"): (looking.masks, ""),
    ("masks", "A padded batch"): (looking.padded, ""),
    ("edits", "Maps"): (changing.maps, ""),
    ("edits", "Every head"): (changing.every_head, ""),
    ("edits", "Faithfulness"): (changing.faithfulness, ""),
    ("compare", "Another head"): (beside.head, ""),
    ("compare", "Another sentence"): (beside.sentence, beside.ASKS_SENTENCE),
    ("compare", "Another model"): (beside.model, beside.ASKS_MODEL),
    ("compare", "Your edits"): (beside.edits, beside.ASKS_EDITS),
    ("museum", "Exhibits"): (finding.exhibits, ""),
    ("museum", "The systems"): (finding.systems, ""),
    **{
        ("museum", f"{views.FIND}: {name}"): (
            partial(finding.instrument, name),
            f"{finding.asks(name)}&{others.CROSS.address}",
        )
        for name in measured.INSTRUMENTS
    },
    ("train", ""): (train, ""),
    ("checkpoints", "Ledger"): (weighing.ledger, ""),
    ("checkpoints", "Weights"): (weighing.weights, ""),
    ("checkpoints", "Norms"): (weighing.norms, ""),
    ("checkpoints", "Spectra"): (weighing.spectra, ""),
    ("checkpoints", "Heads"): (weighing.heads, ""),
    ("checkpoints", "Doctor"): (weighing.doctor, ""),
}
OF_A_RUN = ("compare", "A training step")
"""Offered only where a training lies beside the model, so it has a test of its own."""


def address(view: View, asks: str) -> str:
    page, said = "" if view[0] == "start" else view[0], views.every().get(view, "")
    if "model=" in asks:  # another model than the others read, with its own choices
        return f"/{page}?{asks.lstrip('&')}{said}"
    return f"/{page}?{core.ADDRESS}{said}{asks}"


ALL = {
    ", ".join(filter(None, view)): (truth, address(view, asks))
    for view, (truth, asks) in TRUTHS.items()
}
ALL |= {
    name: (truth, address((name.partition(" of ")[0], ""), asks))
    for name, (truth, asks) in others.TRUTHS.items()
}


def opened(visitor: Visitor, name: str) -> list[Claim]:
    """What this view claims, of the decoder or of the model that is named."""
    truth, where = ALL[name]
    visitor.open(where)
    visitor.no_traceback()
    return truth(visitor)


@pytest.fixture(scope="module")
def one(browser: Browser, server: Server) -> Iterator[Visitor]:
    """One browser for all pages: each is opened anew, but what it is made of comes only once."""
    made = Visitor(browser, server.url)
    yield made
    made.close()


@pytest.fixture
def visitor(one: Visitor) -> Iterator[Visitor]:
    """Its page is left after each test: a page that stays open asks on beside a benchmark."""
    yield one
    one.page.goto("about:blank")


def faults(claims: list[Claim]) -> list[str]:
    return [claim.fault() for claim in claims if claim.fault()]


@pytest.mark.parametrize("page", ALL)
def test_every_number_is_the_model_s(visitor: Visitor, page: str) -> None:
    claims = opened(visitor, page)
    assert claims
    assert faults(claims) == []


def test_a_training_step_is_the_step_s(visitor: Visitor, server: Server) -> None:
    run = tiny_run(server.runs)
    work(run.folder)
    visitor.open(f"/compare?with={quote_plus(OF_A_RUN[1])}&{beside.asks_step(run)}")
    visitor.no_traceback()
    claims = beside.step(visitor, run)
    assert claims
    assert faults(claims) == []


def test_no_view_is_left_out() -> None:
    """What the pages' own tables offer is read here."""
    assert set(views.every()) == {*TRUTHS, OF_A_RUN}
    assert set(views.CHOICES) <= set(views.pages())


PLANT = """([from, to]) => {
  let found = 0;
  const plant = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) plant(element.shadowRoot);
      for (const node of element.childNodes) {
        if (node.nodeType !== Node.TEXT_NODE || node.textContent.trim() !== from) continue;
        node.textContent = to;
        found += 1;
      }
    }
  };
  plant(document);
  return found;
}"""
PLANTED = [
    "pairs",
    "tokens",
    "decoding, Beam search",
    "heads, Likeness",
    "checkpoints, Spectra",
    "pairs of translation",
    "stages of negation",
]


def cut_off(claim: Claim) -> str:
    """The number with its last digit cut off where it should be rounded, a whole one off by one."""
    if isinstance(claim.true, int):
        return str(claim.true + 1)
    decimals = len(claim.shown.partition(".")[2])
    size = math.floor(abs(claim.true) * 10**decimals) / 10**decimals
    return f"{'−' if claim.true < 0 else ''}{size:.{decimals}f}"


@pytest.mark.parametrize("page", PLANTED)
def test_a_planted_false_number_is_seen(visitor: Visitor, page: str) -> None:
    """One last digit cut off instead of rounded: no more is wrong with it."""
    claims = opened(visitor, page)
    assert faults(claims) == []
    right = next(claim for claim in claims if cut_off(claim) != claim.shown)
    wrong = cut_off(right)
    assert visitor.page.evaluate(PLANT, [right.shown, wrong]) >= 1
    assert any(wrong in fault for fault in faults(ALL[page][0](visitor)))


@pytest.mark.parametrize(
    ("shown", "true", "step", "right"),
    [
        ("0.319", 0.3186, 0.0, True),
        ("0.318", 0.3186, 0.0, False),
        ("0.318", 0.31852, 1e-4, True),
        ("0.318", 0.3186, 1e-4, False),
        ("0", 0.3, 0.0, False),
        ("1", 0.7, 0.0, False),
        ("0", 0.0, 0.0, True),
        ("124", 123.6, 0.0, True),
        ("123", 123.6, 0.0, False),
        ("7.90e−7", 7.904e-7, 0.0, True),
        ("7.90e−7", 7.96e-7, 0.0, False),
        ("1,024", 1024, 0.0, True),
        ("1,024", 1025, 0.0, False),
    ],
)
def test_a_number_is_right_to_half_its_last_digit(
    shown: str, true: float, step: float, right: bool
) -> None:
    assert (Claim("a number", shown, true, step).fault() == "") is right

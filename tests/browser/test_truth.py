"""Every page shows the numbers of the model: read in the browser, made again from the core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, expect

from models import load_checkpoint
from models.interventions import Scale
from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth import core, looking, others
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, grid, rows, said
from tests.browser.visiting import Visitor
from tests.served import Server
from tests.source import ROOT

OFF = Scale(f"{core.SITE}.head_out", 0.0, core.HEAD)


def edits(visitor: Visitor) -> list[Claim]:
    visitor.page.get_by_role("button", name="Ablate layer 1, head 2").click()
    expect(visitor.page.get_by_text("Nothing is changed yet")).to_have_count(0)
    visitor.rest()
    facts = dict(grid(visitor, 0))
    before, after = core.logits(), core.logits(OFF)
    best = int(before[-1].argmax())
    everywhere = [core.kl(p, q) for p, q in zip(before, after, strict=True)]
    return [
        Claim("KL here", facts["KL here"], everywhere[-1]),
        Claim("mean KL", facts["mean KL over positions"], sum(everywhere) / len(everywhere)),
        Claim("loss before", facts["loss before"], core.loss(before)),
        Claim("loss after", facts["loss after"], core.loss(after)),
        Claim("logit before", facts["watched logit before"], float(before[-1, best])),
        Claim("logit after", facts["watched logit after"], float(after[-1, best])),
    ]


def compare(visitor: Visitor) -> list[Claim]:
    first, second = core.weights(), core.weights(1, 3)
    bits = said(visitor, r"Their rows are ([\d.]+) bits apart")[0]
    return [
        Claim("bits apart", bits, core.apart(first, second)),
        a_cell(visitor, "map_second", second, 5, 2),
        a_cell(visitor, "map_difference", second - first, 7, 6),
    ]


def museum(visitor: Visitor) -> list[Claim]:
    """The doubled exponent at the document's own width of 512."""
    shown = next(line for line in rows(visitor, 2) if line[0].startswith("PE(1)"))
    right = [core.sinusoid(1, d, 512) for d in range(4)]
    wrong = [
        f(1 / 10_000 ** (2 * (i + odd) / 512))
        for i in (0, 2)
        for odd, f in ((0, math.sin), (1, math.cos))
    ]
    return [
        Claim(f"PE(1)[{at}]", each, true)
        for numbers, truth in ((shown[1], wrong), (shown[2], right))
        for at, (each, true) in enumerate(zip(numbers.split(), truth, strict=True))
    ]


def train(visitor: Visitor) -> list[Claim]:
    folder = ROOT / "models" / "checkpoints" / "reverse"
    model = load_checkpoint(folder).model
    visitor.drawn("watched")
    head, score = said(visitor, r"Layer 0, head (\d) · ([\d.]+) on the pattern")
    assert 0 <= int(head) < model.config.n_heads
    return [Claim("score on the pattern", score, core.reversing(folder, "reverse", int(head)))]


def checkpoints(visitor: Visitor) -> list[Claim]:
    made = []
    for name in ("translation", "shakespeare", "reviews", "negation"):
        model = load_checkpoint(ROOT / "models" / "checkpoints" / name).model
        shown = said(visitor, rf"{name}\s+[^\n]+\s+ours\s+([\d,]+)")[0]
        made.append(Claim(f"parameters of {name}", shown, parameters(model)))
    ledger = {line[0]: line for line in rows(visitor)[1:]}
    model = core.model()
    made.append(Claim("all parameters", ledger["all parameters"][-1], parameters(model)))
    attention = model.last_stack.blocks[0].self_attn
    made.append(Claim("self-attention", ledger["self-attention"][-1], parameters(attention)))
    visitor.choose("Ledger of", "web tutorial, encoder")
    preset = Transformer(PRESETS["web tutorial, encoder"]())
    shown = said(visitor, r"(520,\d+) parameters")[0]
    return [*made, Claim("web tutorial's encoder", shown, parameters(preset))]


def parameters(module: torch.nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


TRUTHS: dict[str, tuple[Callable[[Visitor], list[Claim]], str]] = {
    "start": (looking.start, ""),
    "tokens": (looking.tokens, ""),
    "learning": (looking.learning, "&learn_rules=50&learn_step=0"),
    "positions": (looking.positions, "&scheme=Sinusoidal"),
    "attention": (looking.attention, ""),
    "heads": (looking.heads, "&metric=Previous"),
    "stages": (looking.stages, ""),
    "pairs": (looking.pairs, "&query=7+·+␣be&key=6+·+␣to"),
    "lens": (looking.lens, ""),
    "walk": (looking.walk, f"&stage={core.SITE}.weights"),
    "writing": (looking.writing, ""),
    "decoding": (looking.decoding, ""),
    "masks": (looking.masks, "&example=Your+sentence"),
    "edits": (edits, ""),
    "compare": (compare, ""),
    "museum": (museum, ""),
    "train": (train, ""),
    "checkpoints": (checkpoints, ""),
}


ALL = {page: (truth, f"{core.ADDRESS}{asks}") for page, (truth, asks) in TRUTHS.items()}
ALL |= others.TRUTHS


def opened(visitor: Visitor, name: str) -> list[Claim]:
    """What this page claims, of the decoder or of the model that is named."""
    truth, asks = ALL[name]
    page = name.partition(" of ")[0]
    visitor.open(f"/{'' if page == 'start' else page}?{asks}")
    visitor.no_traceback()
    return truth(visitor)


@pytest.fixture(scope="module")
def visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    """One browser for all pages: each is opened anew, but what it is made of comes only once."""
    one = Visitor(browser, server.url)
    yield one
    one.close()


def faults(claims: list[Claim]) -> list[str]:
    return [claim.fault() for claim in claims if claim.fault()]


@pytest.mark.parametrize("page", ALL)
def test_every_number_is_the_model_s(visitor: Visitor, page: str) -> None:
    claims = opened(visitor, page)
    assert claims
    assert faults(claims) == []


def test_no_page_is_left_out() -> None:
    assert {path.stem for path in Path(ROOT / "pages").glob("*/*.py")} == set(TRUTHS)


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


def cut_off(claim: Claim) -> str:
    """The number with its last digit cut off where it should be rounded, a whole one off by one."""
    if isinstance(claim.true, int):
        return str(claim.true + 1)
    decimals = len(claim.shown.partition(".")[2])
    size = math.floor(abs(claim.true) * 10**decimals) / 10**decimals
    return f"{'−' if claim.true < 0 else ''}{size:.{decimals}f}"


@pytest.mark.parametrize("page", ["pairs", "tokens", "pairs of translation", "stages of negation"])
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

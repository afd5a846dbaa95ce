"""The whole pass by hand: keys, clicks and buttons; and one number followed to the answer."""

from __future__ import annotations

import contextlib
import math
import re
from functools import partial

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from explorer import library, reading
from explorer.analysis.walk import stages_of
from explorer.numbers import three
from models import trace
from tests.browser.visiting import Visitor
from tests.served import wait_until

TRANSLATION = "the white cat does not see the black house"
ADDRESS = f"/walk?model=translation&text={TRANSLATION.replace(' ', '+')}&head=0"
HEAD, NUMBER, KEY = 0, 5, 1
ROWS = {"encoder": 2, "decoder": 3}
"""What is followed: a number of these tokens' vectors, in this head; they look at this key."""
LAYER = (
    ("q · k", "self_attn.products", ()),
    ("Softmax", "self_attn.weights", ("self_attn.scores",)),
    ("Head outputs", "self_attn.head_out", ()),
    ("Add", "resid_mid", ("resid_pre", "self_attn.out")),
)
CROSS = (
    ("Scores", "cross_attn.scores", ("cross_attn.products",)),
    ("Softmax", "cross_attn.weights", ("cross_attn.scores",)),
    ("Add", "resid_cross", ("resid_mid", "cross_attn.out")),
)
NUMBERS = re.compile(r"-?\d(?:\d|\{,\})*(?:\.\d+)?(?: \\cdot 10\^\{-?\d+\})?")


def stops() -> list[tuple[str, str, tuple[str, ...]]]:
    """Title and name of the stages to stop at, and which numbers the equation begins with."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for stack in ROWS:
        found.append(("Embedding", f"{stack}.embed", ()))
        found.append(
            ("Sum: the stream begins", f"{stack}.sum", (f"{stack}.embed", f"{stack}.pos_embed"))
        )
        before = "resid_cross" if stack == "decoder" else "resid_mid"
        behind = ("Add", "resid_post", (before, "mlp.out"))
        for title, name, reads in (*LAYER, *(CROSS if stack == "decoder" else ()), behind):
            found.append((title, f"{stack}.0.{name}", tuple(f"{stack}.0.{each}" for each in reads)))
        found.append(("Last norm", f"{stack}.final", ()))
    return [*found, ("Logits", "logits", ()), ("Softmax", "probabilities", ("logits",))]


@pytest.fixture(scope="module")
def passed() -> dict[str, Tensor]:
    """The core's pass, by the names that the page gives to its stages."""
    opened = library.open_model("translation")
    of = reading.read(opened, TRANSLATION)
    ids = [torch.tensor([[token.id for token in side]]) for side in (of.source, of.target)]
    made = {name: value[0].double() for name, value in trace(opened.model, *ids).values.items()}
    for stack in ROWS:
        made[f"{stack}.sum"] = made[f"{stack}.embed"] + made[f"{stack}.pos_embed"]
    for name in [name for name in made if name.endswith("_attn.scores")]:
        width = made[name.replace("scores", "q")].shape[-1]
        made[name.replace("scores", "products")] = made[name] * math.sqrt(width)
    made["probabilities"] = made["logits"].softmax(-1)
    return made


def held(passed: dict[str, Tensor], stage: str) -> tuple[int, int, Tensor]:
    """Row and column of the number that is followed, and the row of values it stands in."""
    row = ROWS.get(stage.partition(".")[0], ROWS["decoder"])
    values = passed[stage][HEAD, row] if passed[stage].dim() == 3 else passed[stage][row]
    if stage in ("logits", "probabilities"):
        return row, int(values.argmax()), values
    if stage.endswith((".products", ".scores", ".weights")):
        return row, ROWS["encoder"] if "cross_attn" in stage else KEY, values
    return row, NUMBER, values


def agrees(shown: str, value: float, beside: Tensor) -> bool:
    """Whether the value is what is shown, rounded; the pass was made in single precision."""
    digits, _, power = shown.replace("−", "-").replace(",", "").partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    slack = 5e-6 * float(beside[beside.isfinite()].abs().max())
    return abs(float(f"{digits}e{power or 0}") - value) <= last / 2 + slack


def numbers_in(latex: str) -> list[str]:
    """Every number that an equation writes out, as it would stand in a sentence."""
    found = NUMBERS.findall(latex.replace(r"\rule{0pt}{2em}", ""))
    return [re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", each.replace("{,}", "")) for each in found]


def here(visitor: Visitor) -> Locator:
    """The stage on the spine where one stands."""
    return visitor.widget("spine").locator("[aria-current=step]")


def stands_at(visitor: Visitor, title: str, stage: str) -> None:
    """On the spine, in the address and over the values."""
    expect(here(visitor)).to_have_text(title)
    visitor.asks(stage=stage)
    visitor.rest()
    expect(visitor.page.get_by_test_id("stMain").locator("strong").first).to_have_text(title)


def walk_to(visitor: Visitor, title: str, stage: str) -> None:
    """With the right arrow, which belongs to the spine where nothing else has the focus."""
    names = list(stages_of(library.open_model("translation").config))
    at = [each.name for each in names].index(visitor.query().get("stage", names[0].name))
    visitor.page.get_by_role("heading", level=1).click()
    while names[at].name != stage:
        visitor.page.keyboard.press("ArrowRight")
        at += 1
    stands_at(visitor, title, stage)


def fault(visitor: Visitor, passed: dict[str, Tensor], stage: str, reads: tuple[str, ...]) -> str:
    """What is wrong of the held number in the sentence and in the equation, or nothing."""
    view = visitor.widget("walk_values")
    row, column, values = held(passed, stage)
    place, shown = view.locator(".place").inner_text(), view.locator(".sentence .value")
    if not re.search(rf" {row}, \w+ {column}$", place) or not shown.count():
        return f"{stage}: it holds {place}, not {row} and {column}"
    if not agrees(said := shown.inner_text(), float(values[column]), values):
        return f"{stage}: it says {said}, not {values[column]:.6g}"
    equation = visitor.page.get_by_test_id("stMain").locator("annotation").last.text_content() or ""
    left, _, right = equation.partition(" = ")
    written = numbers_in(left) + numbers_in(right)
    for place_of, each in enumerate((stage, *reads)):
        _, at, beside = held(passed, each)
        if not written[place_of:] or not agrees(written[place_of], float(beside[at]), beside):
            return f"{stage}: no {beside[at]:.6g} of {each} in {equation}"
    return ""


def test_one_number_is_followed_from_the_typed_letters_to_the_probability(
    visitor: Visitor, passed: dict[str, Tensor]
) -> None:
    """At every stop the sentence and the equation have the number, and those it is made of."""
    chosen = "&".join(f"{stack}_token={row}" for stack, row in ROWS.items())
    page = visitor.open(
        f"/walk?model=translation&head={HEAD}&{chosen}&number={NUMBER}&key_token={KEY}"
    )
    visitor.type(TRANSLATION)
    visitor.asks(text=TRANSLATION)
    visitor.rest()
    cells = page.get_by_test_id("stDataFrame").locator('[data-testid^="glide-cell-3-"]')
    tokens = library.open_model("translation").tokenizer.encode(TRANSLATION)
    for token in tokens[:5]:
        expect(cells.filter(has_text=re.compile(rf"^{token.id}$")).first).to_be_attached()
    for title, stage, reads in stops():
        walk_to(visitor, title, stage)
        looked = partial(fault, visitor, passed, stage, reads)
        with contextlib.suppress(AssertionError):
            wait_until(lambda looked=looked: not looked(), stage, 15)  # type: ignore[misc]
        assert looked() == ""
    answer = visitor.widget("walk_values").locator(".sentence .token").last
    expect(answer).to_have_text("ne")
    expect(visitor.widget("spine").get_by_role("button", name="Next", exact=True)).to_be_disabled()


def test_stages_are_chosen_with_the_keys_and_on_the_spine(visitor: Visitor) -> None:
    page = visitor.open(ADDRESS)
    expect(here(visitor)).to_have_text("Tokens")
    expect(visitor.widget("walk_tokens").locator(".chip")).to_have_count(10)
    for press, title, stage in (
        (" ", "Embedding", "encoder.embed"),
        ("ArrowDown", "Positions", "encoder.pos_embed"),
        ("ArrowRight", "Sum: the stream begins", "encoder.sum"),
        ("ArrowLeft", "Positions", "encoder.pos_embed"),
        ("ArrowUp", "Embedding", "encoder.embed"),
    ):
        page.keyboard.press(press)
        stands_at(visitor, title, stage)
    page.reload()
    visitor.rest()
    stands_at(visitor, "Embedding", "encoder.embed")
    spine = visitor.widget("spine")
    spine.get_by_role("button", name=re.compile("Decoder layer 0")).click()
    visitor.rest()
    spine.get_by_role("button", name="Scores", exact=True).nth(1).click()
    stands_at(visitor, "Scores", "decoder.0.cross_attn.scores")
    for button, title, stage in (
        ("Next", "Masked", "decoder.0.cross_attn.masked"),
        ("Back", "Scores", "decoder.0.cross_attn.scores"),
    ):
        spine.get_by_role("button", name=button, exact=True).click()
        stands_at(visitor, title, stage)


def test_many_quick_steps_end_where_they_lead(visitor: Visitor) -> None:
    page = visitor.open("/walk?model=translation")
    visitor.drawn("spine")
    for _ in range(12):
        page.keyboard.press(" ")
    names = list(stages_of(library.open_model("translation").config))
    stands_at(visitor, names[12].title, names[12].name)
    page.get_by_label("Your sentence", exact=True).press("End")
    page.keyboard.press(" ")
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(re.compile(r" $"))
    expect(here(visitor)).to_have_text(names[12].title)


def test_a_cell_chooses_its_token_and_the_lengths_follow(visitor: Visitor) -> None:
    visitor.open("/walk?model=shakespeare&stage=decoder.0.resid_mid&text=To+be,+or+not")
    of = reading.read(library.open_model("shakespeare"), "To be, or not")
    lengths = visitor.widget("spine").locator(".bone .length")

    def length(token: int) -> str:
        return three(float(of.trace["decoder.0.resid_post"][0, token].norm()))

    expect(lengths.nth(1)).to_have_text(length(-1))
    visitor.choose("Token", "1 ·")
    visitor.asks(decoder_token="1")
    expect(lengths.nth(1)).to_have_text(length(1))
    visitor.rest()
    canvas = visitor.widget("walk_values").locator("canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    visitor.asks(decoder_token="2")
    expect(lengths.nth(1)).to_have_text(length(2))


def test_the_held_pair_travels_to_the_heads_pages_and_back(visitor: Visitor) -> None:
    """By links and by the menu: the query and the key stay, whoever chose them."""
    stage = "encoder.0.self_attn.weights"
    page = visitor.open(f"{ADDRESS}&stage={stage}&encoder_token=1&key_token=3")
    visitor.drawn("walk_values")
    page.get_by_role("button", name="Query and key of this pair").click()
    visitor.titled("Query and key")
    visitor.asks(query="1 · white", key="3 · does")
    visitor.choose("Key", "5 ·")
    visitor.asks(key="5 · see")
    visitor.rest()
    page.get_by_role("button", name="This head in the whole pass").click()
    visitor.titled("The whole pass")
    visitor.asks(stage=stage, encoder_token="1", key_token="5")
    visitor.follow("Head, step by step")
    visitor.asks(held="q1k5", model="translation", text=TRANSLATION, head="0")
    page.reload()  # what a link had chosen is still in the address
    visitor.rest()
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(TRANSLATION)
    page.get_by_role("button", name="This head in the whole pass").click()
    visitor.titled("The whole pass")
    visitor.asks(stage=stage, encoder_token="1", key_token="5", head="0", text=TRANSLATION)
    expect(visitor.widget("walk_values").locator(".place")).to_have_text("query 1, key 5")

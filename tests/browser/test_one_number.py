"""One number followed by hand from the typed letters to the probability, on two kinds of model.

At every join what the screen says is held against `plain_pass`, which the app has no part in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from tests.browser.plain_pass import Plain, judged, translated
from tests.browser.visiting import Visitor
from tests.served import ROOT, wait_until

CHECKPOINTS = ROOT / "models" / "checkpoints"
HEAD, NUMBER = 1, 5
"""What is followed of every vector, and in which head."""
ROUNDING = 5e-6
"""Of the largest number beside it: what single precision may be away from double."""
BLOCK = (
    ("q · k", "self_attn.products"),
    ("Scores", "self_attn.scores"),
    ("Softmax", "self_attn.weights"),
    ("Head outputs", "self_attn.head_out"),
    ("Add", "resid_mid"),
)
CROSS = (
    ("q · k", "cross_attn.products"),
    ("Scores", "cross_attn.scores"),
    ("Softmax", "cross_attn.weights"),
    ("Head outputs", "cross_attn.head_out"),
    ("Add", "resid_cross"),
)
BEHIND = (("Feed-forward out", "mlp.out"), ("Add", "resid_post"))


@dataclass(frozen=True)
class Followed:
    """A text, the pass over it, and the tokens and the key that are held."""

    model: str
    text: str
    made: Plain
    ids: dict[str, list[int]]
    rows: dict[str, int]
    answer: str

    @property
    def key(self) -> int:
        """The one looked at second most: the page holds the first where nobody chose."""
        stack, row = next(iter(self.rows.items()))
        weights = self.made[f"{stack}.0.self_attn.weights"][row]
        return int(weights.topk(2).indices[1])


def translation() -> Followed:
    text = "the white cat does not see the black house"
    source, target, made = translated(CHECKPOINTS / "translation", text, HEAD)
    ids = {"encoder": source, "decoder": target}
    return Followed("translation", text, made, ids, {"encoder": 2, "decoder": 3}, "ne")


def classifier() -> Followed:
    text = "the food was not good"
    ids, made = judged(CHECKPOINTS / "negation", text, HEAD)
    return Followed("negation", text, made, {"encoder": ids}, {"encoder": 4}, "negative")


def joins(made: Plain, stack: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Title and name of every stage to stop at, and which numbers its equation begins with."""
    found: list[tuple[str, str, tuple[str, ...]]] = [("Embedding", f"{stack}.embed", ())]
    stream = f"{stack}.embed"
    if f"{stack}.sum" in made:
        stream = f"{stack}.sum"
        found.append(("Sum: the stream begins", stream, (f"{stack}.embed", f"{stack}.pos_embed")))
    layer = 0
    while f"{stack}.{layer}.resid_post" in made:
        crosses = CROSS if f"{stack}.{layer}.resid_cross" in made else ()
        for title, tail in (*BLOCK, *crosses, *BEHIND):
            name = f"{stack}.{layer}.{tail}"
            branch, _, last = name.rpartition(".")
            reads: tuple[str, ...] = {
                "scores": (f"{branch}.products",),
                "weights": (f"{branch}.scores",),
                "resid_mid": (stream, f"{branch}.self_attn.out"),
                "resid_cross": (stream, f"{branch}.cross_attn.out"),
                "resid_post": (stream, f"{branch}.mlp.out"),
            }.get(last, ())
            found.append((title, name, reads))
            if title == "Add":
                stream = name
        layer += 1
    return [*found, ("Last norm", f"{stack}.final", ())]


NUMBER_IN_LATEX = re.compile(r"-?\d(?:\d|\{,\})*(?:\.\d+)?(?: \\cdot 10\^\{-?\d+\})?")


def numbers_in(latex: str) -> list[str]:
    """Every number that is written out, as it would stand in a sentence."""
    found = NUMBER_IN_LATEX.findall(latex)
    return [re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", each.replace("{,}", "")) for each in found]


def agrees(shown: str, value: float, beside: float) -> bool:
    """Whether the value, rounded to the digits that are shown, is what is shown."""
    text = shown.strip("()").replace("−", "-").replace(",", "")
    digits, _, power = text.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(float(text) - value) <= 0.5 * last + ROUNDING * max(beside, abs(value))


def held(of: Followed, name: str) -> tuple[int, int]:
    """Row and column of the number that is followed, among the values of a stage."""
    stack = name.partition(".")[0]
    row = of.rows.get(stack, [*of.rows.values()][-1])
    if name in ("logits", "probabilities"):  # of its answers, the likeliest is the first
        row = min(row, len(of.made[name]) - 1)
        return row, int(of.made["logits"][row].argmax())
    if name.endswith((".products", ".scores", ".weights")):
        return row, of.rows["encoder"] if "cross_attn" in name else of.key
    return min(row, len(of.made[name]) - 1), NUMBER


class Reader:
    """Goes on with the right arrow until the spine says so, and reads the held cell there."""

    def __init__(self, visitor: Visitor, of: Followed) -> None:
        self.visitor, self.page, self.of = visitor, visitor.page, of
        self.here = visitor.widget("spine").locator("[aria-current=step]")
        self.view = visitor.widget("walk_values")

    def go_to(self, title: str, stage: str) -> None:
        """One step at least; the keys belong to the spine where nothing else has them."""
        self.page.get_by_role("heading", level=1).click()
        for _ in range(12):
            self.page.keyboard.press("ArrowRight")
            if self.here.inner_text() == title:
                break
        expect(self.here).to_have_text(title)
        self.visitor.asks(stage=stage)
        self.visitor.rest()
        heading = self.page.get_by_test_id("stMain").locator("strong").first
        expect(heading).to_have_text(title)

    def place(self) -> tuple[int, int] | None:
        """Which cell the picture says is held."""
        found = re.fullmatch(r".* (\d+), \w+ (\d+)", self.view.locator(".place").inner_text())
        return (int(found[1]), int(found[2])) if found else None

    def hold(self, row: int, column: int, **asked: str) -> None:
        """With the arrow keys, from the cell that is held when one comes."""
        canvas = self.view.locator("canvas")
        wait_until(lambda: self.place() is not None, "a held cell", 30)
        began = self.place()
        assert began is not None
        canvas.focus()
        for key, by in (("Down", row - began[0]), ("Right", column - began[1])):
            other = {"Down": "Up", "Right": "Left"}[key]
            for _ in range(abs(by)):
                canvas.press(f"Arrow{key if by > 0 else other}")
        self.visitor.asks(**asked)
        self.visitor.rest()

    def says(self, name: str, reads: tuple[str, ...] = ()) -> None:
        """The picture's sentence and the equation below it have the number; and those it is of."""
        row, column = held(self.of, name)
        values = self.of.made[name][row]
        value, beside = float(values[column]), float(values[values.isfinite()].abs().max())
        equation = self.page.get_by_test_id("stMain").locator("annotation").last
        shown = self.view.locator(".sentence .value")

        def right() -> bool:
            if self.place() != (row, column) or not shown.count():
                return False
            left, _, made = (equation.text_content() or "").partition(" = ")
            numbers = numbers_in(left.replace(r"\rule{0pt}{2em}", "")) + numbers_in(made)
            wanted = [(value, beside)]
            for each in reads:
                at, its = held(self.of, each)
                of_row = self.of.made[each][at]
                wanted.append((float(of_row[its]), float(of_row.abs().max())))
            return (
                agrees(shown.inner_text(), value, beside)
                and len(numbers) >= len(wanted)
                and all(agrees(n, *w) for n, w in zip(numbers, wanted, strict=False))
            )

        try:
            wait_until(right, f"{value:.6g} of {name} at {(row, column)}", 15)
        except AssertionError as error:
            said = self.view.locator(".sentence").inner_text(), self.place()
            raise AssertionError(f"{error}: {said}, {equation.text_content()}") from None


@pytest.mark.parametrize(
    "follow", [translation, pytest.param(classifier, marks=pytest.mark.thorough)]
)
def test_one_number_from_the_typed_letters_to_the_probability(
    visitor: Visitor, follow: Callable[[], Followed]
) -> None:
    of = follow()
    page = visitor.open(f"/walk?model={of.model}&head={HEAD}")
    visitor.drawn("spine")
    visitor.type(of.text)
    visitor.asks(text=of.text)
    visitor.rest()
    reader = Reader(visitor, of)
    for stack, ids in of.ids.items():
        if stack != next(iter(of.ids)):
            reader.go_to("Tokens", f"{stack}.tokens")
        for place, number in enumerate(ids):
            told = page.get_by_test_id("stDataFrame")
            cell = told.get_by_test_id(re.compile(rf"glide-cell-\d-{place}$"))
            expect(cell.filter(has_text=re.compile(rf"^{number}$")).last).to_be_attached()
        row = of.rows[stack]
        for title, name, reads in joins(of.made, stack):
            reader.go_to(title, name)
            if title == "Embedding":
                chosen = {f"{stack}_token": str(row), "number": str(NUMBER)}
                reader.hold(row, NUMBER, **chosen)
                table = page.get_by_test_id("stMain").locator("annotation").last
                expect(table).to_contain_text(rf"E_{{{ids[row]},\,{NUMBER}}}")
            if title == "q · k" and "key_token" not in visitor.query():
                reader.hold(row, of.key, key_token=str(of.key))
            reader.says(name, reads)
    if "head.pooled" in of.made:
        reader.go_to("Pooled", "head.pooled")
        reader.says("head.pooled")
    reader.go_to("Logits", "logits")
    reader.says("logits")
    reader.go_to("Softmax", "probabilities")
    reader.says("probabilities", ("logits",))
    expect(reader.view.locator(".sentence .token").last).to_have_text(of.answer)
    expect(visitor.widget("spine").get_by_role("button", name="Next", exact=True)).to_be_disabled()

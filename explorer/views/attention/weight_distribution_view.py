"""The weights of the chosen head over many lines, by decile, with examples of each decile."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.weight_distribution import (
    DECILES,
    ReadLines,
    WeightDeciles,
    readable_lines,
    usual_lines,
    weight_deciles,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of, text_field
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.bars import block_bars, height_of
from explorer.components.chart import chart
from explorer.components.chips import chips
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.tasks.bundled_text import REVIEWS
from explorer.text import TextError, Token
from explorer.text.checked_text import lines_in
from explorer.text.number_format import three
from explorer.text.token_labels import label_at, named_at, texts
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import CROSS
from explorer.views.shared.measurement import measurement
from explorer.views.shared.tables import table

AROUND = 8
"""Tokens that a row's text shows before its first marked token and after its last one."""
MEANING = (
    "The visible cells of all lines, sorted by the weight of this head and cut into ten parts of "
    "equally many cells. A bar is the share of all weight that lies in a part; beside it are the "
    "smallest and the largest weight. The three examples of a part are at even distances in its "
    "order: what a head does in most cells, not only where it is strongest."
)
Example = tuple[int, int, int, float]
"""A line, a query, a key, and the weight."""


def draw_distribution(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The deciles of the chosen head, and examples of them; the lines are typed in the `row`."""
    opened, at = context.opened, context.choice
    with row, st.popover("Lines", icon=":material/notes:"):
        typed = text_field("own_lines", has_lines=True, placeholder="Type or paste lines")
    weights = sum(weight.numel() for weight in opened.model.parameters())
    most = (MOST if typed.strip() else QUICK // 2) // weights
    try:
        lines = lines_in(typed) if typed.strip() else usual_lines(opened)
        text = readable_lines(opened, lines, most, own=bool(typed.strip()))
    except (ForwardPassError, TextError) as error:
        say(str(error))
        return None

    deciles = measurement(
        opened,
        "distribution",
        ("weight deciles", at.part, text.lines),
        lambda report: weight_deciles(opened, at.part, text, report),
        cost=weights * sum(map(len, text.rows)),
        doing="Reading the lines",
    )
    if deciles is None:
        return None
    if why := why_no_deciles(deciles, at.layer, at.head):
        say(why)
        return None
    bars, three_rows = widgets.side_by_side(2, 3)
    with bars:
        _draw_bars(context, deciles)
    with three_rows:
        _draw_examples(context, text, deciles)
    source = "" if typed.strip() or opened.task else f" {REVIEWS.attribution}"
    st.caption(f"{_read(text, deciles, at.layer, bool(typed.strip()))} {MEANING}{source}")
    _draw_table(context, deciles)
    return script(deciles_code, opened, at.part, text.lines, at.layer, at.head)


def why_no_deciles(deciles: WeightDeciles, layer: int, head: int) -> str:
    """Why this head has none, in a sentence; empty where it has."""
    cells = int(deciles.visible[layer])
    if not cells:
        return "Every row of this head is fully masked: type other lines."
    if not deciles.finite[layer, head]:
        return (
            "Some weights of this head are not finite, so they cannot be sorted: the page "
            "Checkpoints shows which tensor of the model is at fault."
        )
    if max(map(len, deciles.keys)) == 1:
        return "Every line is a single token, whose only weight is 1: type longer lines."
    if cells < DECILES:
        return f"Only {cells} cells are visible, fewer than there are deciles: type longer lines."
    return ""


def _read(text: ReadLines, deciles: WeightDeciles, layer: int, is_own: bool) -> str:
    """How many lines and cells there are, and what is left out."""
    whose = "your lines" if is_own else "built-in lines that this model reads"
    read = f"All {text.count:,} of {whose}"
    if len(text.lines) < text.count:
        read = f"The first {len(text.lines):,} of {text.count:,} of {whose}, as many as are quick"
    masked = int(deciles.masked[layer])
    left = f" {masked:,} masked ones are left out." if masked else " None is masked."
    return f"{read}: {int(deciles.visible[layer]):,} cells.{left}"


def _draw_bars(context: PageContext, deciles: WeightDeciles) -> None:
    at = context.choice
    low, high, share = (
        getattr(deciles, name)[at.layer, at.head].tolist() for name in ("low", "high", "share")
    )
    names = [
        f"{number} · {three(least)} to {three(most)}"
        for number, (least, most) in enumerate(zip(low, high, strict=True), 1)
    ]
    title = f"{head_title(at.called, *at.place)}: weights by decile"
    st.markdown(f"**Layer {at.layer}, head {at.head}: weights by decile**")
    columns = {"decile": names, "from": low, "to": high, "share": share}
    spec = block_bars(names, share, "share of all weight")
    chart(spec, key="weight_deciles", title=title, table=columns, height=height_of(names))


def _examples(deciles: WeightDeciles, layer: int, head: int, decile: int) -> list[Example]:
    """The different examples of a decile, the weakest first."""
    cells = deciles.examples[layer, head, decile].tolist()
    weights = deciles.weights[layer, head, decile].tolist()
    return [*dict.fromkeys((*cell, weight) for cell, weight in zip(cells, weights, strict=True))]


def _draw_examples(context: PageContext, text: ReadLines, deciles: WeightDeciles) -> None:
    """The rows of the chosen decile's examples as chips, the darker the larger a weight is."""
    at, opened = context.choice, context.opened
    numbers = [str(number + 1) for number in range(DECILES)]
    decile = numbers.index(one_of("decile", numbers, numbers[-1]))
    for place, (line, query, key, weight) in enumerate(
        _examples(deciles, at.layer, at.head, decile)
    ):
        queries, keys = deciles.queries[line], deciles.keys[line]
        st.text(f"{named_at(queries, query)} → {named_at(keys, key)}: {three(weight)}")
        weights = run_text(opened, text.lines[line]).weights(*at.place)[query]
        marked = [key] if at.part == CROSS else [query, key]
        chips(keys, key=f"decile_{place}", highlight=marked, values=weights.tolist(), unit="weight")


def _draw_table(context: PageContext, deciles: WeightDeciles) -> None:
    """Every example in a line of plain text."""
    at = context.choice
    rows: list[dict[str, object]] = []
    for decile in reversed(range(DECILES)):
        for line, query, key, weight in _examples(deciles, at.layer, at.head, decile):
            queries, keys = deciles.queries[line], deciles.keys[line]
            rows.append(
                {
                    "decile": decile + 1,
                    "weight": three(weight),
                    "query": label_at(queries, query),
                    "key": label_at(keys, key),
                    "row": row_text(keys, None if at.part == CROSS else query, key),
                }
            )
    st.markdown("**Examples of every decile** · the query in « », the key in [ ]")
    table(rows, right=("weight",), most_rows=DECILES)


def row_text(tokens: tuple[Token, ...], query: int | None, key: int) -> str:
    """The tokens around a query and a key, both marked; without a query, around the key."""
    words = texts(tokens)
    words[key] = f"[{words[key]}]"
    places = [key]
    if query is not None:
        words[query] = f"«{words[query]}»"
        places.append(query)
    first, end = max(0, min(places) - AROUND), max(places) + AROUND + 1
    return " ".join(["…"] * (first > 0) + words[first:end] + ["…"] * (end < len(words)))


def deciles_code(
    opened: OpenModel, part: str, lines: tuple[str, ...], layer: int, head: int
) -> None:
    text = readable_lines(opened, lines, 1_000_000, own=True)
    deciles = weight_deciles(opened, part, text)
    for decile in range(10):
        low, high = deciles.low[layer, head, decile], deciles.high[layer, head, decile]
        print(float(low), float(high), float(deciles.share[layer, head, decile]))
        print(deciles.examples[layer, head, decile])  # the line, query and key of three cells

"""The weights of the chosen head over many lines, by decile, with examples of each decile."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import weight_distribution
from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.weight_distribution import DECILES, WeightDeciles, weight_deciles
from explorer.app.context import PageContext
from explorer.app.controls import one_of, text_field
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.bars import block_bars, height_of
from explorer.components.chart import chart
from explorer.components.chips import chips
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.text import TextError
from explorer.text.checked_text import lines_in
from explorer.text.number_format import three, weight_text
from explorer.text.token_labels import named_at
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import CROSS
from explorer.views.shared.measurement import measurement

MEANING = (
    "The visible cells of all lines are sorted by this head's weight and cut into ten parts of "
    "equally many cells. A bar is a part's share of all weight; beside it are its smallest and its "
    "largest weight. The examples are at even distances in the order of their part, so they show "
    "what the head does in most cells, not only where it is strongest."
)
NUMBERS = [str(number + 1) for number in range(DECILES)]


def draw_distribution(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The deciles of the chosen head, and examples of them; the lines are typed in the `row`."""
    opened, at = context.opened, context.choice
    with row, st.popover("Lines", icon=":material/notes:"):
        typed = text_field("own_lines", has_lines=True, placeholder="Type or paste lines").strip()
    weights = sum(weight.numel() for weight in opened.model.parameters())
    most_tokens = (MOST if typed else QUICK // 2) // weights
    try:
        every, source = (lines_in(typed), "") if typed else weight_distribution.usual_lines(opened)
        counts = weight_distribution.readable_lines(opened, every, most_tokens, own=bool(typed))
    except (ForwardPassError, TextError) as error:
        say(str(error))
        return None
    lines = tuple(counts)
    deciles = measurement(
        opened,
        "distribution",
        ("weight deciles", at.part, lines),
        lambda report: weight_deciles(opened, at.part, lines, report),
        cost=weights * sum(counts.values()),
        doing="Reading the lines",
        at_once=True,
    )
    if deciles is None:
        return None
    if why := why_no_deciles(deciles, at.layer, at.head):
        say(why)
        return None
    bars, examples = widgets.side_by_side(2, 3)
    with bars:
        of_heads = deciles.low, deciles.high, deciles.share
        low, high, share = (values[at.layer, at.head].tolist() for values in of_heads)
        ends = [dict.fromkeys(map(weight_text, both)) for both in zip(low, high, strict=True)]
        names = [f"{number} · {' to '.join(of)}" for number, of in zip(NUMBERS, ends, strict=True)]
        st.markdown(f"**Layer {at.layer}, head {at.head}: weights by decile**")
        title = f"{head_title(context.called, *at.place)}: weights by decile"
        spec = block_bars(names, share, "share of all weight")
        chart(spec, key="weight_deciles", title=title, height=height_of(names))
    with examples:
        _draw_examples(context, lines, deciles)
    read = f"{len(lines):,} of {len(every):,} {'lines of yours' if typed else 'built-in lines'}"
    if len(lines) < len(every):
        read += ", as many as this model reads in a short time"
    visible, masked = deciles.cells[at.layer].tolist()
    st.caption(f"{read}: {visible:,} visible cells; {masked:,} are masked. {MEANING} {source}")
    return script(deciles_code, opened, at.part, lines, at.layer, at.head)


def why_no_deciles(deciles: WeightDeciles, layer: int, head: int) -> str:
    """Why this head has none, in a sentence; empty where it has."""
    visible = int(deciles.cells[layer, 0])
    if not visible:
        return "Every row of this head is fully masked: type other lines."
    if not deciles.finite[layer, head]:
        return (
            "Some weights of this head are not finite, so they cannot be sorted: the page "
            "Models shows which tensor of the model is at fault."
        )
    if visible < DECILES:
        return f"Ten deciles need at least 10 visible cells, not {visible}: type longer lines."
    return ""


def _draw_examples(context: PageContext, lines: tuple[str, ...], deciles: WeightDeciles) -> None:
    """The rows of the chosen decile's examples as chips, the darker the larger a weight is."""
    at = context.choice
    decile = NUMBERS.index(one_of("decile", NUMBERS, NUMBERS[-1]))
    cells = deciles.examples[at.layer, at.head, decile].tolist()
    weights = deciles.weights[at.layer, at.head, decile].tolist()
    for place, ((line, query, key), weight) in enumerate(zip(cells, weights, strict=True)):
        if [line, query, key] in cells[:place]:  # a decile of one or two cells
            continue
        forward = run_text(context.opened, lines[line])
        queries, keys = forward.rows(at.part), forward.columns(at.part)
        st.text(f"{named_at(queries, query)} → {named_at(keys, key)}: {three(weight)}")
        marked = [key] if at.part == CROSS else [query, key]
        row = forward.weights(*at.place)[query].tolist()
        chips(keys, key=f"decile_{place}", highlight=marked, values=row, unit="weight")


def deciles_code(
    opened: OpenModel, part: str, lines: tuple[str, ...], layer: int, head: int
) -> None:
    deciles = weight_deciles(opened, part, lines)
    print(deciles.low[layer, head], deciles.high[layer, head], deciles.share[layer, head])
    print(deciles.examples[layer, head])  # the line, query and key of three cells of each decile

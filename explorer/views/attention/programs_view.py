"""Heads as mixtures of small programs: what describes each, and the loss when it is replaced."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis import head_programs
from explorer.analysis.head_programs import LONGEST, MOST_LINES, HeadPrograms, ProgramLines
from explorer.app.context import PageContext
from explorer.app.controls import follow, text_field
from explorer.app.messages import say
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.head_charts import program_grid
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.inference.core_edits import mixture_in_pass
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import cached, is_cached
from explorer.inference.token_programs import PREDICATES, WHOLE_PROGRAMS, ProgramError, parsed
from explorer.interventions.edits import ReplaceByProgram
from explorer.text import TextError
from explorer.text.checked_text import lines_in
from explorer.text.number_format import signed, three
from explorer.text.visible_text import in_quotes
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import link_with_edit
from explorer.views.shared.heads_grid import heads_grid
from explorer.views.shared.measurement import measurement
from explorer.views.shared.tables import table

GRID, MAPS, CURVE = 300, 330, 240
MEANING = (
    "A program is a rule about the tokens alone: previous(1) reads the token before, decay(2) "
    "every token, by a factor of e less for every 2 tokens of distance. A mixture of up to three "
    "is fitted by least squares; its overlap with the head on other lines is Σ min / Σ max."
)
YOURS = "your program"
BY_PROGRAM, BY_UNIFORM = "the best described, by their programs", "random heads, by a uniform map"


def draw_programs(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The mixture of every head, that of the chosen one, and the curve; returns the code."""
    opened, at = context.opened, context.choice
    if (measured := _measured(context, row)) is None:
        return None
    text, lines, own, heads = measured
    _draw_heads(context, lines, heads)
    _draw_chosen(context, lines, heads[at.layer * lines.part.heads + at.head])
    _draw_curve(opened, lines, heads)
    rows = [
        {"head": f"{of.layer}.{of.head}"} | of.row | {"± over lines": of.spread}
        for of in head_programs.ranked(heads)
    ]
    table(rows, numbers={"overlap": "%.3f", "± over lines": "%.3f"})
    return script(programs_code, opened, text, [own] * bool(own), at.layer, at.head)


def overlaps_with(
    context: PageContext, row: DeltaGenerator, programs: Sequence[str]
) -> tuple[list[Tensor], Script] | None:
    """The overlap (layers, heads) of every head with each of these programs alone, and the code.

    "" stands for the mixture of each head, and `YOURS` for the program that is typed in the `row`.
    """
    opened, at = context.opened, context.choice
    if (measured := _measured(context, row)) is None:
        return None
    text, lines, own, heads = measured
    if YOURS in programs and not own:
        say("Type a program of your own beside the axes, or choose another measure.")
        return None
    names = [own if name == YOURS else name for name in programs]
    grids = [_alone(opened, lines, of) if of else head_programs.grid(lines, heads) for of in names]
    some = [*filter(None, dict.fromkeys((*names, own)))]
    return grids, script(programs_code, opened, text, some, at.layer, at.head)


def _measured(
    context: PageContext, row: DeltaGenerator
) -> tuple[str, ProgramLines, str, tuple[HeadPrograms, ...]] | None:
    """What is typed in the `row`, the text, its lines and the reader's own program or "", and the
    mixture of every head. None if something is missing, and the page says what.
    """
    opened = context.opened
    usual = "\n".join(head_programs.example_lines(opened))
    follow("program_lines", usual)
    with row, st.popover("Lines and your own program", icon=":material/tune:"):
        text = text_field("program_lines", usual, has_lines=True, height=150)
        own = text_field("head_program", placeholder="key is capital and before query").strip()
        reply = st.container()
        st.caption(f"Up to {MOST_LINES} lines, {LONGEST} tokens each. A program: {PREDICATES}.")
        st.caption(f"Or the name of one: {WHOLE_PROGRAMS}.")
    try:
        lines = head_programs.read_lines(opened, lines_in(text))
    except (ForwardPassError, TextError) as error:
        say(str(error))
        return None
    try:
        if own:
            parsed(own)
    except ProgramError as error:
        say(str(error))
        reply.text(str(error))
        own = ""
    tokens = 0 if is_cached(opened, lines.key) else int(lines.keep.sum())
    heads = measurement(
        opened,
        "programs",
        ("programs", lines.key, own),
        lambda report: head_programs.measure_programs(opened, lines, [own] * bool(own), report),
        cost=3 * tokens * opened.model.n_parameters,
        doing="Describing all heads",
        at_once=True,
    )
    if heads and own:
        words = _own_in_words(context, lines, heads, own)
        reply.text(words)
        st.text(words)
    return None if heads is None else (text, lines, own, heads)


def _alone(opened: OpenModel, lines: ProgramLines, program: str) -> Tensor:
    key = ("program alone", *lines.key, program)
    return cached(opened, key, lambda: head_programs.overlaps_of(opened, lines, program))


def _own_in_words(
    context: PageContext, lines: ProgramLines, heads: Sequence[HeadPrograms], own: str
) -> str:
    """The overlap of the reader's program alone, and where it is in a mixture."""
    opened, at = context.opened, context.choice
    overlaps = _alone(opened, lines, own)
    layer, head = divmod(int(overlaps.nan_to_num().argmax()), overlaps.shape[1])
    key, used = ("same programs", *lines.key, own), {name for of in heads for name, _ in of.mixture}
    same = cached(opened, key, lambda: head_programs.same_as(opened, lines, own, [*used]))
    using = [f"{of.layer}.{of.head}" for of in heads if same & {*dict(of.mixture)}]
    names = " and ".join(map(in_quotes, sorted(same & used - {own})))
    return (
        f"Your program alone overlaps by {three(float(overlaps[at.layer, at.head]))} with this "
        f"head, and most with head {layer}.{head}: {three(float(overlaps[layer, head]))}. It is in "
        f"the mixtures of {len(using)} heads{names and f', as {names}'}"
        f"{': ' * bool(using)}{', '.join(using[:8])}{', …' * (len(using) > 8)}."
    )


def _draw_heads(context: PageContext, lines: ProgramLines, heads: Sequence[HeadPrograms]) -> None:
    at = context.choice
    colours, overlaps = widgets.side_by_side(1, 1)
    with colours:
        title = map_title(context.called, at.part, "Strongest program of every head")
        rows = [{"layer": of.layer, "head": of.head} | of.row for of in heads]
        chart(program_grid(rows, "layer", "head"), key="program_grid", title=title, height=GRID)
    with overlaps:
        heads_grid(
            context,
            head_programs.grid(lines, heads),
            key="program_overlaps",
            title=map_title(context.called, at.part, "Overlap of every head with its programs"),
            unit="overlap",
            top=1.0,
            height=GRID,
        )
    cut = f" {lines.cut} lines are cut to {LONGEST} tokens." if lines.cut else ""
    st.caption(
        f"{MEANING} {lines.fitted} lines are fitted, {len(lines.ids) - lines.fitted} scored.{cut} "
        f"{head_programs.n_described(heads)} of {len(heads)} heads overlap by "
        f"{head_programs.DESCRIBED} or more; fainter colours overlap less."
    )


def _draw_chosen(context: PageContext, lines: ProgramLines, of: HeadPrograms) -> None:
    """The mixture of the chosen head in words, and both maps over the sentence."""
    forward, at, title = context.forward, context.choice, widgets.head_title(context)
    where = f"Layer {of.layer}, head {of.head}{', ' * bool(of.name)}{of.name}"
    st.markdown(f"**{where}** · {words_and_cost(context.opened, lines, of)}")
    mixture = tuple((program, round(share, 3)) for program, share in of.mixture)
    edit = ReplaceByProgram(*at.place, mixture)
    link_with_edit("Replace the head by its programs", edit)
    own, other = widgets.side_by_side(1, 1)
    with own:
        widgets.draw_map(forward, *at.place, "head_beside_programs", title, MAPS)
    with other:
        weights, allowed = mixture_in_pass(forward, edit), forward.mask(at.part, at.layer)
        drawn = forward, at.part, weights, "map_of_programs", f"{title} · its programs", MAPS
        widgets.draw_weights(*drawn, allowed=allowed)


def words_and_cost(opened: OpenModel, lines: ProgramLines, of: HeadPrograms) -> str:
    """The mixture, and what replacing the head costs, where that is quick or was measured."""
    if not head_programs.has_loss(opened):
        return of.in_words
    cost = measurement(
        opened,
        "program_cost",
        ("program cost", *lines.key, of),
        lambda report: head_programs.replacement_cost(opened, lines, of),
        cost=2 * _scored_once(opened, lines),
        doing="Replacing this head",
    )
    change = "" if cost is None else f"; replacing it changes the loss by {signed(cost)} nats"
    return of.in_words + change


def _scored_once(opened: OpenModel, lines: ProgramLines) -> int:
    """Multiplications of a pass over the scored lines."""
    return int(lines.keep[lines.fitted :].sum()) * opened.model.n_parameters


def _draw_curve(opened: OpenModel, lines: ProgramLines, heads: Sequence[HeadPrograms]) -> None:
    st.markdown("**Loss with heads replaced**")
    if not head_programs.has_loss(opened):
        st.caption(head_programs.NO_LOSS)
        return
    curve = measurement(
        opened,
        "program_curve",
        ("program curve", *lines.key, tuple(heads)),
        lambda report: head_programs.replacement_curve(opened, lines, heads, report),
        cost=16 * _scored_once(opened, lines),
        doing="Replacing more and more heads",
    )
    if curve is None:
        return
    which = BY_PROGRAM, BY_UNIFORM
    rows = [(count, which[at], loss) for count in curve for at, loss in enumerate(curve[count])]
    over, ticks = "heads replaced", [*curve]
    drawn = lines_over_steps(rows, "loss in nats", "which", over=over, zero=False, ticks=ticks)
    chart(drawn, key="program_curve_chart", title="Loss with heads replaced", height=CURVE)
    count, before = head_programs.n_described(heads), curve[0][0]
    sentence = f"Next-token loss on the scored lines, {three(before)} nats with no head replaced."
    if count:
        sentence += (
            f" With the {count} heads that overlap by {head_programs.DESCRIBED} or more replaced, "
            f"it changes by {signed(curve[count][0] - before)}."
        )
    st.caption(sentence)


def programs_code(opened: OpenModel, text: str, some: list[str], layer: int, head: int) -> None:
    lines = head_programs.read_lines(opened, lines_in(text))
    heads = head_programs.measure_programs(opened, lines, some)
    print(head_programs.grid(lines, heads))  # overlaps of mixtures, layers down, heads across
    for program in some:
        print(program, head_programs.overlaps_of(opened, lines, program))
    chosen = heads[layer * lines.part.heads + head]
    print(chosen.in_words)
    if head_programs.has_loss(opened):
        print(head_programs.replacement_cost(opened, lines, chosen))

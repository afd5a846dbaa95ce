"""The page “Forward pass”: the list of the stages, and the values of the chosen one."""

import math
from functools import partial

import streamlit as st
import torch

from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.pass_values import ALL, PassValues, record_pass
from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stage_cut import (
    StageCut,
    column_kind,
    cut_stage,
    row_names,
    tokens_of,
    windows,
    writes,
)
from explorer.analysis.forward_pass.stages import sizes, stages_of
from explorer.analysis.query_key import strongest
from explorer.app.context import PageContext
from explorer.app.controls import expander, token_names
from explorer.app.session import redraw, state_of
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.components.chips import chips
from explorer.components.matrix import matrix
from explorer.components.stage_list import StageSection, stage_list
from explorer.inference.answers import option_name
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import three
from explorer.text.token_labels import text_of, texts
from explorer.text.visible_text import cut, in_quotes, literal_sentence, readable
from explorer.views.forward_pass.neurons_view import draw_neurons
from explorer.views.shared import pass_position, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.pass_position import STAGE_CHOICES, PassPosition, token_of
from explorer.views.shared.tables import table
from models.presets import NOTEBOOK_TUTORIAL
from models.trace import Trace

NOTEBOOK_IDS = 32, 10
NOTEBOOK_BATCH = NOTEBOOK_TUTORIAL.replace(
    kind="encoder", head="none", vocab_size=100, src_vocab_size=None, n_layers=1
)
BRANCHES = {
    "": "",
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "mlp": "feed-forward",
}


def draw_forward_pass(context: PageContext) -> None:
    """The list of stages on the left, the chosen stage on the right; in a fragment of its own.

    If a step or a link leads to another layer, the whole page is drawn so that the bar follows.
    """
    clicks = state_of(pass_position.StageClicks)
    if clicks.bar_follows:  # before this run writes its own address
        clicks.bar_follows = False
        redraw()
    at = pass_position.chosen_position(context)
    values = values_of(context, at)
    left, right = st.columns([1, 3])
    with left:
        chosen = [tokens_of(values, stack)[place] for stack, place in at.tokens.items()]
        tokens = ", ".join(in_quotes(text_of(token)) for token in chosen)
        stage_list(
            sections(values, at),
            key="stage_list",
            at=at.place,
            on_move=lambda place: pass_position.choose_stage(context, at, place),
            title=f"{context.called} · Norm of the residual stream at {tokens}",
            note="Bars: length (norm) of the token's vector",
        )
    with right.container(gap="xxsmall"):
        _draw_stage(context.opened, values, at)
        if at.stage.kind == "activation":
            draw_neurons(context.opened, values, at)


def values_of(context: PageContext, at: PassPosition) -> PassValues:
    """The values of the pass; what is recorded in addition is cached, block by block."""
    chosen, forward = context.choice, context.forward

    def record(sites: tuple[str, ...]) -> Trace:
        key = ("stages", chosen.text, chosen.pair, sites)
        return cached(context.opened, key, lambda: record_pass(forward, sites))

    return PassValues(forward, chosen.head, at.tokens[forward.config.stacks[-1]], record)


def sections(values: PassValues, at: PassPosition) -> list[StageSection]:
    """The sections of the pass, each with the norm of the residual stream of the chosen token."""
    grouped: dict[tuple[str, str], list[Stage]] = {}
    for stage in values.stages.values():
        grouped.setdefault((stage.stack, stage.section), []).append(stage)
    result = []
    for (stack, section), group in grouped.items():
        norm = _stream_norm(values.forward, group[-1], at.tokens[stack])
        two = len(values.config.stacks) == 2
        result.append(
            StageSection(
                title=f"{stack.capitalize()} {section.lower()}" if two else section,
                stages=tuple(stage.title for stage in group),
                branches=tuple(BRANCHES[stage.branch] for stage in group),
                on_line=tuple(stage.is_stream for stage in group),
                norm=norm,
                label="NaN" if math.isnan(norm) else three(norm) if norm else "",
            )
        )
    return result


def _stream_norm(forward: ForwardPass, last: Stage, token: int) -> float:
    """The norm of the residual stream after a section, if the pass recorded it; else 0."""
    name = f"{last.stack}.{last.layer}.resid_post"
    if last.layer is None:
        name = f"{last.stack}.0.resid_pre" if last.section == "Input" else ""
    if name not in forward.trace:
        return 0.0
    return float(forward.trace[name][forward.row, token].norm())


def _draw_stage(opened: OpenModel, values: PassValues, at: PassPosition) -> None:
    stage, kind, here = at.stage, KINDS[at.stage.kind], ""
    formulas = st.container(horizontal=True, gap="small", key="stage_formulas")
    with formulas:
        in_words = st.container(width="content")
        st.latex(rf"\textstyle {kind.formula(stage, values.config)}", width="content")
    if stage.kind == "tokens":
        draw_tokenization(values, stage, at.row)
        notes, ranges = [], []
    else:
        label = partial(option_name, opened)
        view = cut_stage(values, stage, at.row, at.window, label)
        cell = _pinned_cell(values, view, at)
        _draw_matrix(values, stage, view, at, cell, stage_title(opened.title, values, stage))
        if cell is not None:
            row, column = values.rows(stage.name).index(view.rows[cell[0]]), view.columns[cell[1]]
            if equation := values.equation(stage, row, column):
                total = float(view.values[cell])
                formulas.latex(rf"\textstyle {equation.of(total)}", width="content")
        notes, here = stage_notes(values, stage, view, at), chosen_in_words(values, view, at)
        ranges = windows(view.width) if column_kind(stage) == "dimension" else []
    names = [] if stage.per_text else token_names(row_names(values, stage))
    with st.container(horizontal=True):
        pass_position.draw_controls(at, names, ranges)
    sentence = kind.sentence(values.config)
    in_words.markdown(f"**{stage.title}** {here or sentence}")
    st.caption(" ".join([*[sentence] * bool(here), *notes]))
    with st.expander("Where these values come from"):
        st.caption(f"{_origin(stage)} {_shapes(values, stage)}")
        if stage.kind != "tokens":
            st.caption(recomputed(values, stage, view, at))
    if stage.part:
        pass_position.head_page_links(at.tokens[stage.stack], _key(values, at))


def chosen_in_words(values: PassValues, view: StageCut, at: PassPosition) -> str:
    """What the chosen token reads most, or which token is likeliest, at a stage of these."""
    kind, says = at.stage.kind, {"weights": len(view.columns) == view.width, "probabilities": True}
    if not says.get(kind) or at.row not in view.rows:
        return ""
    row = view.values[view.rows.index(at.row)].nan_to_num(0.0)
    label, share = in_quotes(text_of(view.column_labels[int(row.argmax())])), float(row.max())
    if kind == "probabilities" or not share:
        return literal_sentence(f"Here {label} is the likeliest: {three(share)}.") if share else ""
    read = values.forward.output_tokens if writes(values, at.stage) else ()
    tokens = read or tokens_of(values, at.stage.stack)
    who = in_quotes(text_of(tokens[at.row]))
    return literal_sentence(f"Here {who} reads {label}: {three(share)}.")


def stage_title(model: str, values: PassValues, stage: Stage) -> str:
    """The title of the values: the model, the place in it, and the head if they are of one head."""
    if stage.part and stage.layer is not None:
        whose = f"Layer {stage.layer}"
        if stage.per_head:
            name, head, _ = _head_of(values, stage)
            whose = f"{whose}, {name.lower()} {head}"
        return f"{map_title(model, stage.part, whose)}, {stage.title.lower()}"
    where = f"{stage.stack.capitalize()} · {stage.section}, {stage.title.lower()}"
    return f"{model} · {where}"


def _head_of(values: PassValues, stage: Stage) -> tuple[str, int, int]:
    """The name of a head at this stage, the head that is shown, and the number of heads."""
    is_shared = "kv heads" in stage.shapes[-1]
    count = values.config.kv_heads if is_shared else values.config.n_heads
    return "Key-value head" if is_shared else "Head", values.head_of(count), count


def _origin(stage: Stage) -> str:
    """The name under which the trace records the stage, or what it is computed from."""
    if stage.kind == "tokens":
        return "The input of the model, so it is not recorded."
    if stage.site:
        return f"Recorded as `{stage.site}`."
    if stage.module:
        return f"Not recorded; computed by the module `{stage.module}`."
    return "Not recorded; computed from `" + "` and `".join(stage.reads) + "`."


def _shapes(values: PassValues, stage: Stage) -> str:
    """The shapes that the stage goes through: symbols with their numbers."""
    tokens, source = len(tokens_of(values, stage.stack)), len(values.forward.source)
    keys = source if stage.branch == "cross_attn" else tokens
    config = values.config.of_encoder if stage.stack == "encoder" else values.config
    numbers = sizes(config, 1, tokens, source, keys)
    shapes = [" × ".join(f"{name} {numbers[name]:,}" for name in shape) for shape in stage.shapes]
    return f"Shape: {' → '.join(shapes)}."


def draw_notebook_batch() -> None:
    """Draw the shapes of every stage of the notebook tutorial's example, in a panel that opens."""
    with expander("notebook_batch") as panel:
        if panel.open:
            st.caption(
                "The example of the notebook tutorial: 32 texts of 10 tokens, a vocabulary of 100, "
                "vectors of 512 and 8 heads of 64; here the embedding and one block of its encoder."
            )
            shapes = notebook_shapes()
            table(shapes, most_rows=len(shapes["shape"]))


def notebook_shapes() -> dict[str, list[str]]:
    """Each stage, and the shapes that it goes through in numbers."""
    numbers = sizes(NOTEBOOK_BATCH, *NOTEBOOK_IDS, NOTEBOOK_IDS[1], NOTEBOOK_IDS[1])
    stages = stages_of(NOTEBOOK_BATCH)
    shapes = [
        [" × ".join(str(numbers[name]) for name in shape) for shape in stage.shapes]
        for stage in stages
    ]
    where = [", ".join(filter(None, (stage.section, BRANCHES[stage.branch]))) for stage in stages]
    titles = [stage.title for stage in stages]
    return {"in": where, "stage": titles, "shape": [*map(" → ".join, shapes)]}


def _draw_matrix(
    values: PassValues,
    stage: Stage,
    view: StageCut,
    at: PassPosition,
    pinned: tuple[int, int] | None,
    title: str,
) -> None:
    shares = stage.kind in ("weights", "probabilities")
    allowed = None
    if stage.kind in ("masked", "weights"):
        allowed = values.mask(stage)[torch.tensor(view.rows)][:, torch.tensor(view.columns)]
    what, cell_text = column_kind(stage), "{row}, {column}: {value}"
    row_name = "query" if stage.is_square else "token"
    if writes(values, stage):
        row_name = "reads" if what == "dimension" else "reads / writes"
    if what == "dimension":
        cell_text = "{row}, dimension {column}: {value}"

    def pin(cell: tuple[int, int] | None) -> None:
        if cell is not None:
            row = None if stage.per_text else view.rows[cell[0]]
            pass_position.choose_cell(at, row, view.columns[cell[1]])
        else:
            pass_position.choose_cell(at, None, None)

    matrix(
        view.values,
        view.row_labels,
        view.column_labels,
        key="stage_values",
        title=title,
        scale="sequential" if shares else "diverging",
        allowed=allowed,
        row_name=row_name,
        column_name=what,
        sentence=None if stage.kind == "weights" else cell_text,
        unit={"weights": "weight", "probabilities": "probability"}.get(stage.kind, "value"),
        top=1.0 if shares else None,
        exact=not shares,
        places=(view.rows, view.columns),
        pinned=pinned,
        on_pin=pin,
    )


def _pinned_cell(values: PassValues, view: StageCut, at: PassPosition) -> tuple[int, int] | None:
    """The cell of the chosen token and column; the first column if that one is not drawn."""
    is_one = len(view.rows) == 1
    if not (is_one or at.row in view.rows) or not view.columns:
        return None
    chosen = _key(values, at) if column_kind(at.stage) == "key" else at.column
    column = view.columns.index(chosen) if chosen in view.columns else 0
    return 0 if is_one else view.rows.index(at.row), column


def _key(values: PassValues, at: PassPosition) -> int:
    """The chosen key, else the one that the query attends to most, as on other pages."""
    stage = at.stage
    chosen = at.columns.get(pass_position.key_of(stage.part))
    if chosen is not None or stage.layer is None:
        return chosen or 0
    return strongest(values.forward, stage.part, stage.layer, values.head, at.tokens[stage.stack])


def stage_notes(values: PassValues, stage: Stage, view: StageCut, at: PassPosition) -> list[str]:
    """The head that is shown, and what is not drawn."""
    notes, what = [], column_kind(stage)
    if at.place == len(at.stages) - 1 and values.config.head == "none":
        notes.append(f"The pass ends here. {widgets.ENDS_IN_VECTORS}")
    if stage.per_head:
        name, head, count = _head_of(values, stage)
        notes.append(f"{name} {head}, one of 0 to {count - 1}: the others are chosen above.")
    if view.width > len(view.columns):
        largest = ": the largest of the chosen token, then the largest of every other row"
        order = largest if what == "option" else ""
        notes.append(f"{len(view.columns)} of {view.width:,} {what}s are drawn{order}.")
    if view.height > len(view.rows):
        notes.append(f"{len(view.rows)} of {view.height:,} tokens are drawn.")
    if at.column is not None and at.column not in view.columns:
        why = f"{what.capitalize()} {at.column:,} is not among those drawn"
        if at.column >= view.width:
            why = f"There is no {what} {at.column:,} here, the last is {view.width - 1:,}"
        notes.append(f"{why}: the first one drawn is pinned; choose another to pin it.")
    return notes


def recomputed(values: PassValues, stage: Stage, view: StageCut, at: PassPosition) -> str:
    """How far the row of the chosen token is from the same values, recomputed."""
    rows = values.rows(stage.name)
    row = rows.index(at.row) if at.row in rows else 0
    of_words = stage.kind == "logits"  # a whole vocabulary would be too much for each step
    error = values.relative_error(stage, slice(row, row + 1), [*view.columns] if of_words else ALL)
    part = "The text's row" if stage.per_text else "This token's row"
    part = f"{part} (the values drawn)" if of_words else part
    return widgets.recomputed(f"{part}, recomputed in float64", error)


def stage_script(context: PageContext) -> Script:
    """The code of the chosen stage and head; of the chosen token alone if there are too many."""
    forward = context.forward
    stages = [stage.name for stage in stages_of(forward.config)]
    name = str(STAGE_CHOICES.texts().get("stage") or "")
    stack = forward.config.stacks[-1]
    token = token_of(context, stack, len(forward.source if stack == "encoder" else forward.target))
    name = name if name in stages else pass_position.usual_stage(context)
    return script(stage_code, forward, name, context.choice.head, token)


def stage_code(forward: ForwardPass, name: str, head: int, token: int) -> None:
    stages = PassValues(forward, head, token, lambda sites: record_pass(forward, sites))
    values = stages[name]
    print(values.shape, values)


TOKENS_IN_SIGHT, LONGEST, TOKEN_ID = 16, 24, "token ID"


def draw_tokenization(values: PassValues, stage: Stage, row: int) -> None:
    """The tokens, of which a click chooses one, and a table with the ID of each."""
    tokens, forward = tokens_of(values, stage.stack), values.forward
    chips(
        tokens,
        key="stage_tokens",
        highlight=row,
        on_pick=lambda place: STAGE_CHOICES.put(f"{stage.stack}_token", str(place)),
    )
    names = [cut(name, LONGEST) for name in texts(tokens)]
    ids = [f"{token.id:,}" for token in tokens]
    if writes(values, stage):
        outputs = [cut(name, LONGEST) for name in texts(forward.output_tokens)]
        columns = {"reads": names, TOKEN_ID: ids, "writes": outputs}
    else:
        spans = [forward.typed[token.start : token.end] for token in forward.placed]
        characters = [cut(readable(span), LONGEST) or "none: added" for span in spans]
        columns = {"characters": characters, "token": names, TOKEN_ID: ids}
    positions = [str(place) for place in range(len(tokens))]
    right = ("position", TOKEN_ID)
    table({"position": positions, **columns}, right=right, most_rows=TOKENS_IN_SIGHT, width=560)

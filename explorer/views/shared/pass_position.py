"""The position in the forward pass, which the address has: the stage, the tokens, the columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stage_cut import BETWEEN, DIMENSIONS, column_kind, row_stack
from explorer.analysis.forward_pass.stages import stages_of
from explorer.analysis.query_key import strongest_cell
from explorer.app import streamlit_patches, widget_state
from explorer.app.address import whole_number
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, keep_note
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import redraw, session, state_of
from explorer.catalog.attention_parts import site
from explorer.text.visible_text import cut
from explorer.views.shared import pinned
from explorer.views.shared.pinned import PinnedCell

STAGE_PARAMETERS = ("stage", "encoder_token", "decoder_token", "number", "key_token", "option")


@dataclass
class StageBar:
    """Model, part and layer of the bar when a stage was chosen last."""

    at: tuple[str, str, int] | None = None


STAGE_CHOICES = PersistentChoices("stages", dict.fromkeys(STAGE_PARAMETERS, ""), goes_with=StageBar)


@dataclass
class StageClicks:
    """Whether a view of the Forward pass page caused the run, and not the bar; what is pinned."""

    was_clicked: bool = False
    """It caused this run."""
    bar_follows: bool = False
    """The whole page is drawn again, since the bar has to show another layer."""
    outdated: frozenset[tuple[str, str, int]] = frozenset()
    """Former values of the bar, changed by a stage, that the browser may still report."""
    pinned: str = ""
    """The pinned cell on which the stages and the other pages agreed last."""


def query_of(part: str) -> str:
    """The parameter that holds the query of this attention."""
    return f"{part.split('.')[0]}_token"


def key_of(part: str) -> str:
    """The parameter that holds its key: cross-attention attends to the tokens of the encoder."""
    return "encoder_token" if part == "decoder.cross_attn" else "key_token"


def pin_chosen(context: PageContext, stage: Stage) -> None:
    """Pin the tokens chosen here for the other pages; a token that nobody chose is not pinned."""
    part, texts = stage.part or context.choice.part, STAGE_CHOICES.texts()
    query, key = (whole_number(texts.get(name, "")) for name in (query_of(part), key_of(part)))
    cell = PinnedCell(query, key).within(context.forward, part)
    if str(cell) != state_of(StageClicks).pinned:
        state_of(StageClicks).pinned = str(cell)
        pinned.pin(cell)
    number = texts.get("number")
    if number and stage.shapes[-1][-1] == "d_model":
        widget_state.put("number", number)


def _choose_tokens(part: str, cell: PinnedCell) -> None:
    for name, place in ((query_of(part), cell.query), (key_of(part), cell.key)):
        if place is not None:
            STAGE_CHOICES.put(name, str(place))


def forward_pass_link(context: PageContext, cell: PinnedCell) -> None:
    """A link from a page of the chosen head to its weights in the forward pass."""
    key, label = "to_forward_pass", "This head in the forward pass"
    _draw_link("forward_pass", label, key, _choose_weights, context, cell)


def _choose_weights(context: PageContext, cell: PinnedCell) -> None:
    at = context.choice
    STAGE_CHOICES.put("stage", usual_stage(context))
    state_of(StageBar).at = at.model, at.part, at.layer
    pinned.pin(cell)
    state_of(StageClicks).pinned = str(cell)
    _choose_tokens(at.part, cell)


def head_page_links(query: int, key: int) -> None:
    """Links from a stage of an attention to the pages of its head, with the same query and key."""
    with st.container(horizontal=True):
        for page, label in (
            ("head_steps", "This head, step by step"),
            ("query_key", "Query and key of this pair, number by number"),
        ):
            _draw_link(page, label, f"stage_to_{page}", pinned.pin, PinnedCell(query, key))


def _draw_link(page: str, label: str, key: str, choose: Callable[..., None], *args: Any) -> None:
    """A link that also chooses something; a page that runs alone has no links."""
    if page in session().pages and st.button(
        label, key=key, type="tertiary", icon=":material/arrow_forward:", on_click=choose, args=args
    ):
        switch_page(page)


COLUMNS = {
    "number": ("dimension", "the first"),
    "key_token": ("key", "the one attended to most"),
    "option": ("option", "the first"),
}
"""The names of the columns in the address, what they are, and the default."""
LONGEST_QUOTED_NAME = 40


@dataclass(frozen=True)
class PassPosition:
    """The `place` among the stages, a token of each stack, and a column of each kind."""

    stages: tuple[Stage, ...]
    place: int
    tokens: dict[str, int]
    columns: dict[str, int]

    @property
    def stage(self) -> Stage:
        return self.stages[self.place]

    @property
    def row(self) -> int:
        """The chosen token of the stack whose tokens are the rows of the stage."""
        return self.tokens[row_stack(self.stage)]

    @property
    def column(self) -> int | None:
        return self.columns.get(_column_of(self.stage))

    @property
    def window(self) -> int:
        """The number of the range of dimensions that is shown, with the chosen dimension."""
        return self.columns.get("number", 0) // DIMENSIONS


def chosen_position(context: PageContext) -> PassPosition:
    """The position chosen here or in the address; a note names what is invalid there."""
    forward = context.forward
    is_new = _follow_bar(context)
    cell, clicks = pinned.pinned_anywhere(), state_of(StageClicks)
    if str(cell) != clicks.pinned:  # another page has pinned it in the meantime
        clicks.pinned = str(cell)
        if not streamlit_patches.came_back():  # or the tokens of the address stay chosen
            _choose_tokens(context.choice.part, cell)
    stages = {stage.name: stage for stage in stages_of(forward.config)}
    texts = {name: str(text or "") for name, text in STAGE_CHOICES.texts().items()}
    invalid: dict[str, str] = {}

    def number_of(name: str, kind: str, usual: object, *count: int) -> int | None:
        text = texts.get(name, "")
        number = whole_number(text, *count)
        if text and number is None:
            quoted = cut(text, LONGEST_QUOTED_NAME)
            invalid[name] = f"There is no {kind} “{quoted}” here; showing {usual}."
        return number

    usual = usual_stage(context)
    stage = texts.get("stage") or usual
    if stage not in stages:
        quoted, title = cut(stage, LONGEST_QUOTED_NAME), stages[usual].title
        invalid["stage"] = f"This model has no stage “{quoted}”; showing {title}."
        stage = usual
    counts = {"encoder": len(forward.source), "decoder": len(forward.target)}
    places = _usual_places(context)
    tokens, columns, address = {}, {}, {"stage": stage if stage == texts.get("stage") else ""}
    for stack in forward.config.stacks:
        name = f"{stack}_token"
        first = places[name]
        number = number_of(name, "token", first, counts[stack])
        tokens[stack] = first if number is None else number
        if texts.get(name):
            address[name] = str(tokens[stack])
    if "encoder_token" in address:
        columns["encoder_token"] = tokens["encoder"]
    for name, (kind, usual) in COLUMNS.items():
        if (number := number_of(name, kind, usual)) is not None:
            columns[name] = number
            address[name] = str(number)
    part, layer, head = context.default_head
    here = stages[stage].part, stages[stage].layer, context.choice.head
    if here == (part, layer, head) and tokens[part.split(".")[0]] == places[query_of(part)]:
        columns.setdefault(key_of(part), places[key_of(part)])
    at = PassPosition(tuple(stages.values()), [*stages].index(stage), tokens, columns)
    STAGE_CHOICES.settle(dict.fromkeys(STAGE_PARAMETERS, "") | address)
    of_tokens = {f"{stack}_token": place for stack, place in tokens.items()}
    values = {"stage": stage, **columns, **of_tokens}
    now = context.choice
    for name in STAGE_PARAMETERS:  # a note stays while its replacement is shown for this text
        until = now.model, now.text, now.pair, values.get(name)
        if name in invalid:
            keep_note(f"stage, {name}", invalid[name], until=until)
        draw_notes(f"stage, {name}", until)
    pin_chosen(context, at.stage)
    if is_new and (changed := _bar_of(context, at.stage)):
        session().choose_next = changed
        redraw()
    return at


def usual_stage(context: PageContext) -> str:
    """The stage at which the page opens: the weights of the attention in the bar."""
    at = context.choice
    return f"{site(at.part, at.layer)}.weights"


TAILS = {
    "tokens": "tokens",
    "embedding": "embed",
    "positions": "pos_embed",
    "mlp": "{layer}.mlp.hidden",
    "stream": "{layer}.resid_post",
}
"""By the part of the pass that the miniature names, the name of its stage behind the stack."""


def stage_of_part(context: PageContext, part: str) -> str:
    """The stage of a part of the pass in the bar's stack and layer; empty for the usual stage."""
    at, stages = context.choice, stages_of(context.forward.config)
    if part == "answer":
        return stages[-1].name
    name = f"{at.part.split('.')[0]}.{TAILS.get(part, '').format(layer=at.layer)}"
    return name if name in {stage.name for stage in stages} else ""


def _usual_places(context: PageContext) -> dict[str, int]:
    """By parameter, the tokens of the default head's strongest cell, else the last of a stack."""
    forward, part = context.forward, context.default_head[0]
    last = {"encoder_token": len(forward.source) - 1, "decoder_token": len(forward.target) - 1}
    query, key = strongest_cell(forward, *context.default_head)
    return {**last, query_of(part): query, key_of(part): key}


def token_of(context: PageContext, stack: str, count: int) -> int:
    """The chosen token of a stack that reads `count` tokens, else its usual one."""
    place = whole_number(STAGE_CHOICES.texts().get(f"{stack}_token", ""), count)
    return _usual_places(context)[f"{stack}_token"] if place is None else place


def choose_stage(context: PageContext, at: PassPosition, place: int) -> None:
    """Choose another stage; the bar follows to its attention and layer. For a callback."""
    stage, clicks = at.stages[place], state_of(StageClicks)
    STAGE_CHOICES.put("stage", stage.name)
    changed = _bar_of(context, stage)
    clicks.was_clicked = not changed
    clicks.bar_follows |= bool(changed)
    for name, value in changed.items():
        widget_state.put(name, value)


def _bar(context: PageContext) -> tuple[str, str, int]:
    """Model, part and layer of the bar, including what a callback has just set there."""
    now = context.choice
    part, layer = widget_state.get("part", now.part), widget_state.get("layer", now.layer)
    return now.model, part, layer


def _bar_of(context: PageContext, stage: Stage) -> dict[str, str | int]:
    """The attention and layer that the bar has to change to; empty if it shows them.

    The browser may not know yet what an earlier click changed in the bar: its report is not enough.
    """
    if stage.layer is None:
        return {}
    here, bar, clicks = _bar(context), state_of(StageBar), state_of(StageClicks)
    model, part, _ = here
    if stage.part or not part.startswith(stage.stack):
        part = stage.part or f"{stage.stack}.self_attn"
    target = model, part, stage.layer
    if here == target == bar.at:
        return {}
    clicks.outdated |= {here, bar.at or here} - {target}
    bar.at = target
    return {"part": part, "layer": stage.layer}


def _follow_bar(context: PageContext) -> bool:
    """If another layer was chosen in the bar, choose the same stage of that layer.

    True if the page was opened by a link or with another model: then the bar has to follow
    the stage. A view of this page may cause a run before the browser has the bar's new
    layer; that run reports the former layer, so the new one is set again. Any other layer was
    chosen by the reader while the view caused its run.
    """
    here, bar, clicks = _bar(context), state_of(StageBar), state_of(StageClicks)
    model, part, layer = here
    before, bar.at = bar.at, here
    was_clicked, clicks.was_clicked = clicks.was_clicked, False
    if before is None or before[0] != model:
        return True
    if before == here:
        if was_clicked:  # so the browser reports what the bar was changed to
            clicks.outdated = frozenset()
        return False
    if was_clicked and here in clicks.outdated:
        bar.at = before
        session().choose_next = {"part": before[1], "layer": before[2]}
        redraw()
    clicks.outdated = frozenset()
    stack, branch = part.split(".")
    parts = str(STAGE_CHOICES.texts().get("stage") or usual_stage(context)).split(".")
    tail = parts[3:] if len(parts) > 3 and parts[2].endswith("attn") else ["q"]
    same = ".".join([stack, str(layer), branch, *tail])
    if same in {stage.name for stage in stages_of(context.forward.config)}:
        STAGE_CHOICES.put("stage", same)
    return False


def choose_cell(at: PassPosition, row: int | None, column: int | None) -> None:
    """Choose a token and a column by a cell of the matrix, or unpin it; for a callback."""
    state_of(StageClicks).was_clicked = True
    if column is None:
        return
    if row is not None:
        STAGE_CHOICES.put(f"{row_stack(at.stage)}_token", str(row))
    STAGE_CHOICES.put(_column_of(at.stage), str(column))


def _column_of(stage: Stage) -> str:
    """The parameter of the address that holds its column."""
    kind = column_kind(stage)
    if kind == "key":
        return key_of(stage.part)
    return "number" if kind == "dimension" else kind


def draw_controls(at: PassPosition, names: Sequence[str], cuts: Sequence[str]) -> None:
    """The lists above the matrix: the token, and the range of dimensions of its vector."""
    token = f"{row_stack(at.stage)}_token"
    window = min(at.window, len(cuts) - 1)
    if len(names) > 1:
        label = "Reads / writes" if BETWEEN in names[0] else "Token"
        _draw_list(label, names, at.row, f"stage_{token}", token, 1, width=230)
    if len(cuts) > 1:
        key, name = "stage_dimensions", "number"
        _draw_list("Dimensions", cuts, window, key, name, DIMENSIONS, width=190)


def _draw_list(
    label: str, options: Sequence[str], at: int, key: str, name: str, step: int, *, width: int
) -> None:
    """A list that shows the option `at`; choosing option n writes n × `step` under `name`.

    A list that a quick step skipped reports its former option again, which chooses nothing.
    """

    def take() -> None:
        if widget_state.get(key) != at:
            state_of(StageClicks).was_clicked = True
            STAGE_CHOICES.put(name, str(step * widget_state.get(key)))

    widget_state.put(key, at)
    st.selectbox(
        label,
        range(len(options)),
        format_func=options.__getitem__,
        key=key,
        on_change=take,
        width=width,
    )

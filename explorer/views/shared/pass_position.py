"""The position in the forward pass: the stage, the tokens and the columns, kept in the address."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stage_cut import BETWEEN, DIMENSIONS, columns_are, row_stack
from explorer.analysis.forward_pass.stages import stages_of
from explorer.app import streamlit_patches, widget_state
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, keep_note
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.app.url import whole_number
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
class PinnedStage:
    """The pinned cell on which the stages and the other pages agreed last."""

    text: str = ""


def query_of(part: str) -> str:
    """The parameter that holds the query of this attention."""
    return f"{part.split('.')[0]}_token"


def key_of(part: str) -> str:
    """And its key: cross-attention attends to the tokens of the encoder."""
    return "encoder_token" if part == "decoder.cross_attn" else "key_token"


def take_pinned(context: PageContext) -> None:
    """Choose the tokens that another page has pinned since; once.

    After the browser's Back, the tokens of the address stay chosen.
    """
    found = pinned.pinned_anywhere()
    if str(found) == state_of(PinnedStage).text:
        return
    state_of(PinnedStage).text = str(found)
    if not streamlit_patches.came_back():
        _choose_tokens(context.choice.part, found)


def pin_chosen(context: PageContext, stage: Stage) -> None:
    """Pin for the other pages what was chosen here; what nobody chose keeps their own defaults."""
    part = stage.part or context.choice.part
    found = PinnedCell(_place(query_of(part)), _place(key_of(part))).within(context.forward, part)
    if str(found) != state_of(PinnedStage).text:
        state_of(PinnedStage).text = str(found)
        pinned.pin(found)
    number = STAGE_CHOICES.texts().get("number")
    if number and stage.shapes[-1][-1] == "d_model":
        widget_state.put("number", number)


def _choose_tokens(part: str, found: PinnedCell) -> None:
    for name, place in ((query_of(part), found.query), (key_of(part), found.key)):
        if place is not None:
            STAGE_CHOICES.put(name, str(place))


def _place(name: str) -> int | None:
    return whole_number(STAGE_CHOICES.texts().get(name, ""))


def forward_pass_link(context: PageContext, found: PinnedCell) -> None:
    """From a page of the chosen head to its weights in the forward pass."""
    key, label = "to_forward_pass", "This head in the forward pass"
    _draw_link("forward_pass", label, key, _choose_weights, context, found)


def _choose_weights(context: PageContext, found: PinnedCell) -> None:
    at = context.choice
    STAGE_CHOICES.put("stage", f"{site(at.part, at.layer)}.weights")
    state_of(StageBar).at = at.model, at.part, at.layer
    pinned.pin(found)
    state_of(PinnedStage).text = str(found)
    _choose_tokens(at.part, found)


def head_page_links(query: int, key: int) -> None:
    """From a stage of an attention to the pages of its head, which show the same query and key."""
    with st.container(horizontal=True):
        for page, label in (
            ("head_steps", "This head, step by step"),
            ("query_key", "Query and key of this pair, number by number"),
        ):
            _draw_link(page, label, f"stage_to_{page}", pinned.pin, PinnedCell(query, key))


def _draw_link(page: str, label: str, key: str, choose: Callable[..., None], *args: Any) -> None:
    """A link that chooses something on its way; a page that is run alone has no others."""
    if page in session().pages and st.button(
        label,
        key=key,
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=choose,
        args=args,
    ):
        switch_page(page)


COLUMNS = {
    "number": ("dimension", "the first"),
    "key_token": ("key", "the one attended to most"),
    "option": ("option", "the first"),
}
"""The names of the columns in the address, what they are, and the default."""
LONGEST_QUOTED_NAME = 40


@dataclass
class StageClicks:
    """Which runs a view of the Forward pass page has caused, not the bar."""

    was_clicked: bool = False
    """It caused this run."""
    bar_follows: bool = False
    """The whole page is drawn again, since the bar has to show another layer."""
    outdated: frozenset[tuple[str, str, int]] = frozenset()
    """What the browser may still report of the bar, which a stage has changed since."""


@dataclass(frozen=True)
class PassPosition:
    """`place` among the stages, a token of each stack, a column of each kind."""

    stages: tuple[Stage, ...]
    place: int
    tokens: dict[str, int]
    columns: dict[str, int]

    @property
    def stage(self) -> Stage:
        return self.stages[self.place]

    @property
    def row(self) -> int:
        """The chosen position, of the text that the rows of the stage stand for."""
        return self.tokens[row_stack(self.stage)]

    @property
    def column(self) -> int | None:
        return self.columns.get(_column_of(self.stage))

    @property
    def window(self) -> int:
        """Which range of a vector is shown: the one with the chosen dimension."""
        return self.columns.get("number", 0) // DIMENSIONS


def chosen_position(context: PageContext) -> PassPosition:
    """What is chosen here or in the address; a message names what is invalid there."""
    forward = context.forward
    is_new = _follow_bar(context)
    take_pinned(context)
    stages = {stage.name: stage for stage in stages_of(forward.config)}
    asked = {name: str(text or "") for name, text in STAGE_CHOICES.texts().items()}
    invalid: dict[str, str] = {}

    def number_of(name: str, kind: str, usual: object, *count: int) -> int | None:
        text = asked.get(name, "")
        number = whole_number(text, *count)
        if text and number is None:
            quoted = cut(text, LONGEST_QUOTED_NAME)
            invalid[name] = f"There is no {kind} “{quoted}” here; showing {usual}."
        return number

    first = next(iter(stages.values()))
    stage = asked.get("stage") or first.name
    if stage not in stages:
        quoted = cut(stage, LONGEST_QUOTED_NAME)
        invalid["stage"] = f"This model has no stage “{quoted}”; showing {first.title}."
        stage = first.name
    counts = {"encoder": len(forward.source), "decoder": len(forward.target)}
    tokens, columns, kept = {}, {}, {"stage": "" if stage == first.name else stage}
    for stack in forward.config.stacks:
        name, last = f"{stack}_token", counts[stack] - 1
        number = number_of(name, "token", last, counts[stack])
        tokens[stack] = last if number is None else number
        if asked.get(name):
            kept[name] = str(tokens[stack])
    if "encoder_token" in kept:
        columns["encoder_token"] = tokens["encoder"]
    for name, (kind, usual) in COLUMNS.items():
        if (number := number_of(name, kind, usual)) is not None:
            columns[name] = number
            kept[name] = str(number)
    at = PassPosition(tuple(stages.values()), [*stages].index(stage), tokens, columns)
    STAGE_CHOICES.settle(dict.fromkeys(STAGE_PARAMETERS, "") | kept)
    of_tokens = {f"{stack}_token": place for stack, place in tokens.items()}
    shown = {"stage": stage, **columns, **of_tokens}
    now = context.choice
    for name in STAGE_PARAMETERS:  # each note stays while its replacement is shown, of this text
        until = now.model, now.text, now.pair, shown.get(name)
        if name in invalid:
            keep_note(f"stage, {name}", invalid[name], until=until)
        draw_notes(f"stage, {name}", until)
    pin_chosen(context, at.stage)
    if is_new and (changed := _bar_of(context, at.stage)):
        session().choose_next = changed
        st.rerun()
    return at


def token_of(stack: str, count: int) -> int:
    """The chosen token of a stack that reads so many; the last where no such one is chosen."""
    found = whole_number(STAGE_CHOICES.texts().get(f"{stack}_token", ""), count)
    return count - 1 if found is None else found


def choose_stage(context: PageContext, at: PassPosition, place: int) -> None:
    """Choose another stage; the bar follows to its attention and layer. For a callback."""
    stage, clicks = at.stages[place], state_of(StageClicks)
    STAGE_CHOICES.put("stage", stage.name if place else "")
    changed = _bar_of(context, stage)
    clicks.was_clicked = not changed
    if changed:
        for name, value in changed.items():
            widget_state.put(name, value)
        clicks.bar_follows = True


def _bar(context: PageContext) -> tuple[str, str, int]:
    """Model, part and layer of the bar, also what a callback has just set there."""
    now = context.choice
    part, layer = widget_state.get("part", now.part), widget_state.get("layer", now.layer)
    return now.model, part, layer


def _bar_of(context: PageContext, stage: Stage) -> dict[str, str | int]:
    """The attention and layer that the bar has to change to; nothing if it shows them.

    The browser may not have heard yet of what a click before this one made the bar show, so
    what it reports is not enough.
    """
    model, part, _ = _bar(context)
    if stage.layer is None:
        return {}
    if stage.part or not part.startswith(stage.stack):
        part = stage.part or f"{stage.stack}.self_attn"
    target = model, part, stage.layer
    here, bar, clicks = _bar(context), state_of(StageBar), state_of(StageClicks)
    if here == target == bar.at:
        return {}
    clicks.outdated |= {here, bar.at or here} - {target}
    bar.at = target
    return {"part": part, "layer": stage.layer}


def _follow_bar(context: PageContext) -> bool:
    """If another layer was chosen in the bar, choose the same stage of that layer.

    True if the page was opened by a link or with another model: then the bar has to follow
    the stage. A view of this page may cause a run before the browser has the bar's new
    layer; what that run has of the bar is the layer before, so it is set again. Any other
    layer was chosen by the reader, in the time that the view took to cause its run.
    """
    here, bar, clicks = _bar(context), state_of(StageBar), state_of(StageClicks)
    model, part, layer = here
    seen, bar.at = bar.at, here
    was_clicked, clicks.was_clicked = clicks.was_clicked, False
    if seen is None or seen[0] != model:
        return True
    if seen == here:
        if was_clicked:  # so the browser reports what the bar was changed to
            clicks.outdated = frozenset()
        return False
    if was_clicked and here in clicks.outdated:
        bar.at = seen
        session().choose_next = {"part": seen[1], "layer": seen[2]}
        st.rerun()
    clicks.outdated = frozenset()
    stack, branch = part.split(".")
    parts = str(STAGE_CHOICES.texts().get("stage", "")).split(".")
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
    """The name in the address of its columns."""
    kind = columns_are(stage)
    if kind == "key":
        return key_of(stage.part)
    return "number" if kind == "dimension" else kind


def draw_controls(at: PassPosition, names: Sequence[str], cuts: Sequence[str]) -> None:
    """The token, and which dimensions of its vector, above the matrix.

    The tokens of each text are a list of their own: see `_draw_list`.
    """
    token = f"{row_stack(at.stage)}_token"
    window = min(at.window, len(cuts) - 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(names) > 1:
            label = "Token: reads / writes" if BETWEEN in names[0] else "Token"
            _draw_list(label, names, at.row, f"stage_{token}", token, 1, width=320)
        if len(cuts) > 1:
            key, name = "stage_dimensions", "number"
            _draw_list("Dimensions", cuts, window, key, name, DIMENSIONS, width=140)


def _draw_list(
    label: str, options: Sequence[str], at: int, key: str, name: str, step: int, *, width: int
) -> None:
    """A list that shows the option `at`, and chooses the place of another times `step`.

    A list that a quick step skipped reports what it showed once more: that chooses nothing.
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

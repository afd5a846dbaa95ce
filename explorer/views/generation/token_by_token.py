"""One token after another: the stages of each choice, the branches, and a head's map."""

from collections.abc import Sequence

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, keep_note, or_stop
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components.board import Cell, Column, Row, board
from explorer.components.chips import chips
from explorer.inference.branches import NO_ROOM, Branches
from explorer.inference.continuation import (
    Continuation,
    continue_from,
    prompt_of,
    sample_tokens,
    unknown_in,
)
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.generation_limits import Prompt, stop_reason, typed_ids
from explorer.inference.sampling_stages import (
    SamplingStages,
    generator_at,
    sample_token,
    sampling_stages,
)
from explorer.text.number_format import three
from explorer.text.token_labels import candidate_text
from explorer.views.generation import token_trees
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.step_slider import chosen_step, draw_stepper
from models.generation import generate
from models.sampling import Sampling, choose_from, sample

MOST_TOKENS = 12
"""Rows of the table of the next token, without those of branches and of all other tokens."""
LEAST_SHARE = 1e-4
"""The smallest probability that the table writes."""


def draw_token_by_token(context: PageContext, row: DeltaGenerator) -> Script:
    """Draw the text so far, the next choice, a head's map and the branches; return the code.

    The buttons stand in the `row` of the page.
    """
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    picture = st.container(gap="xxsmall")
    text_so_far = picture.container()
    choice, head, how = picture.columns([7, 4, 2])
    with how:
        temperature, top_k = controls.slider("temperature"), controls.whole("top_k")
        top_p = controls.slider("top_p")
        sampling = Sampling(temperature, top_k or None, top_p if top_p < 1 else None)
        seed, count = controls.whole("seed"), int(controls.slider("length"))
    branches = token_trees.current_branches(context, prompt)
    branches = _generate(context, prompt, branches, sampling, seed, count)
    line, path = [0, *branches.line], [branches.nodes[node].token for node in branches.line]
    step = chosen_step(token_trees.STEP, len(line), branches.depths[branches.at])
    stopped = stop_reason(opened, prompt, path[:step])
    at = step - 1 if stopped and step else step  # no token is chosen after the last one
    fed = path[:-1] if stop_reason(opened, prompt, path) else path
    continuation = or_stop(lambda: continue_from(opened, text, fed))
    stages = sampling_stages(continuation.all_logits[at], sampling)
    sampled = sample_token(stages, sampling, seed, at)
    with row:
        _draw_moves(branches, line, step, sampled, stopped, count)
    with text_so_far:
        _draw_text(opened, prompt, path, step)
    draw_notes(token_trees.CLICK)
    before = [token.label for token in (*prompt.tokens, *map(opened.tokenizer.token, path[:at]))]
    name = candidate_text(opened.tokenizer.label(sampled), before)
    share = three(float(stages.final[sampled]))
    says = f"Next: {name}, {how_chosen(stages, sampling, seed, share)}"
    if stopped:
        says = f"{stopped} The table shows the last choice; undo it or choose another."
    with choice:
        marked = None if stopped else sampled
        draw_sampling_stages(opened, stages, sampling, branches, line[at], marked, before, says)
        st.caption(f"{cut_summary(stages, sampling)} Choose one to continue with it.")
    with head:
        _draw_head(context, continuation, at)
        _draw_typing(opened, prompt, branches, line[step], stopped)
    st.markdown("**Branches**")
    with st.container(horizontal=True):
        controls.undo_buttons(branches, Branches(), token_trees.put_branches, "_writing")
    token_trees.draw_branches(context, branches, continuation, line[len(fed)], step)
    widgets.notes(continuation.forward.notes)
    return script(choice_code, opened, text, fed, sampling, seed, at)


def _draw_moves(
    branches: Branches, line: list[int], step: int, sampled: int, stopped: str, count: int
) -> None:
    """Draw the stepper along the branch, and the buttons that sample one token or `count`.

    At the end of the branch, the stepper's next step samples a token.
    """
    off = bool(stopped) or not branches.room

    def sample() -> None:
        token_trees.append_tokens(branches, [sampled], forced=False, behind=line[step])

    def request_tokens() -> None:
        state_of(token_trees.GenerateClick).is_pending = True

    last = len(line) - 1
    with st.container():
        draw_stepper(
            token_trees.STEP,
            len(line),
            branches.depths[branches.at],
            arrows=True,
            on_grow=None if off or step < last else sample,
        )
    st.button("Sample one", key="draw", type="primary", on_click=sample, disabled=off)
    st.button(f"Generate {count}", key="write_on", on_click=request_tokens, disabled=off)


def _draw_typing(
    opened: OpenModel, prompt: Prompt, branches: Branches, here: int, stopped: str
) -> None:
    """Draw a field for tokens that the reader wants to force after node `here`."""

    def force() -> None:
        typed = widget_state.get("typed", "")
        widget_state.put("typed", "")
        try:
            tokens = typed_ids(opened, prompt, branches.path(here), typed)
        except ForwardPassError as error:
            keep_note(token_trees.CLICK, str(error))
        else:
            keep_note(token_trees.CLICK, " ".join(unknown_in(opened, typed)))
            token_trees.append_tokens(branches, tokens, forced=True, behind=here)

    st.text_input(
        "Type the next words",
        key="typed",
        label_visibility="collapsed",
        on_change=force,
        max_chars=200,
        disabled=bool(stopped),
        placeholder="Type the next words",
    )


def _generate(
    context: PageContext,
    prompt: Prompt,
    branches: Branches,
    sampling: Sampling,
    seed: int,
    count: int,
) -> Branches:
    """After a click on Generate, sample up to `count` tokens; Undo removes them together."""
    opened, click, line = context.opened, state_of(token_trees.GenerateClick), [0, *branches.line]
    is_pending, click.is_pending = click.is_pending, False
    here = line[min(widget_state.get(token_trees.STEP, len(line)), len(line) - 1)]
    path = list(branches.path(here))
    if not is_pending or stop_reason(opened, prompt, path):
        return branches
    tokens = list[int]()
    with bar("Generating", lambda _: None) as report:
        for token in sample_tokens(opened, context.choice.text, path, sampling, seed):
            tokens.append(token)
            report(len(tokens) / count)
            if len(tokens) == count or stop_reason(opened, prompt, [*path, *tokens]):
                break
    fitting = branches.fitting(tokens, here)
    branches = branches.append(tokens[:fitting], forced=False, behind=here)
    if fitting < len(tokens):
        keep_note(token_trees.CLICK, NO_ROOM.format(room=branches.room))
    token_trees.keep_generated(branches)
    return branches


def _draw_text(opened: OpenModel, prompt: Prompt, path: list[int], step: int) -> None:
    """Draw the prompt and the tokens of the branch; a click goes to the step after a token."""
    tokens = [*prompt.tokens, *map(opened.tokenizer.token, path)]
    prompt_length = len(prompt.tokens)

    def go_to(place: int) -> None:
        token_trees.go_to_step(max(0, place + 1 - prompt_length))

    end = prompt_length + step
    chips(
        tokens,
        key="decoded",
        highlight=end - 1,
        later=end,
        on_pick=go_to,
        prompt=prompt_length,
    )


def how_chosen(stages: SamplingStages, sampling: Sampling, seed: int, share: str) -> str:
    """How the next token was chosen; `share` is its probability."""
    if sampling.temperature == 0:
        equal = int((stages.logits == stages.logits.max()).sum())
        which = "the likeliest" if equal == 1 else f"the first of the {equal:,} likeliest"
        return f"{which}: at temperature 0 nothing is sampled."
    if stages.left == 1:
        return "the only one that is left."
    return f"sampled with seed {seed}, probability {share}."


def _draw_head(context: PageContext, continuation: Continuation, step: int) -> None:
    """Draw the chosen head's map over the text so far; it grows with every token."""
    at, forward = context.choice, continuation.forward
    is_whole = step == continuation.steps
    widgets.draw_weights(
        forward,
        at.part,
        continuation.weights(at.part, at.layer, at.head, step),
        "decoded_head",
        widgets.head_title(context),
        rows=continuation.rows(at.part, step),
        columns=continuation.columns(at.part, step),
        allowed=continuation.mask(at.part, at.layer, step),
        absent="masked" if is_whole else "masked or later",
    )
    if at.part == "decoder.cross_attn":
        words = forward.part(at.part).words
        st.caption(f"{words.explanation} The last row writes the next token.")


def draw_sampling_stages(
    opened: OpenModel,
    stages: SamplingStages,
    sampling: Sampling,
    branches: Branches,
    here: int,
    sampled: int | None,
    before: Sequence[str],
    says: str,
) -> None:
    """Draw the likeliest tokens after node `here`, the sampled one, the branches', and the rest.

    `before` are the labels of the tokens up to there; `says` stands over the table.
    """
    steps = _steps(stages, sampling)
    in_branches = branches.children[here]
    also = [*([] if sampled is None else [sampled]), *in_branches]
    tokens = stages.likeliest(MOST_TOKENS, also)
    marks = dict.fromkeys(in_branches, "in a branch")
    if sampled is not None:
        marks[sampled] = "sampled" if sampling.temperature else "next"
    names = [candidate_text(opened.tokenizer.label(token), before) for token in tokens]
    rows = [
        _token_row(stages, steps, token, name, marks.get(token, ""))
        for token, name in zip(tokens, names, strict=True)
    ]
    if others := _other_tokens(stages, steps, tokens):
        rows.append(others)

    def force(place: int) -> None:
        token_trees.append_tokens(branches, [tokens[place]], forced=True, behind=here)

    board(
        [Column("logit", "raw score"), *(column for column, _ in steps)],
        rows,
        key="stages",
        title="Next token, stage by stage",
        corner="token",
        idle=says,
        sentence="{row} · {column}: {value}",
        pick="Force {row} as the next token",
        half=True,
        on_pick=force,
    )


Steps = Sequence[tuple[Column, Tensor]]


def _steps(stages: SamplingStages, sampling: Sampling) -> Steps:
    """A column for the softmax and for each step that changes it, with its probabilities."""
    t = f"{sampling.temperature:g}"
    steps = [(Column("softmax", "sums to 1"), stages.plain)]
    if sampling.temperature != 1:
        name = f"temperature {t}"
        steps.append((Column(name, "sums to 1", f"temp. {t}"), stages.tempered))
    before = stages.tempered
    for name, limit, after in (
        ("top-k", sampling.top_k, stages.top_k),
        ("top-p", sampling.top_p, stages.top_p),
    ):
        if not torch.equal(before, after):
            cut = f"cuts {_share(float((before - after).sum()))}"
            steps.append((Column(f"{name} {limit:,}", cut), after))
        before = after
    if not torch.equal(before, stages.final):
        left = f"÷ {three(float(before.sum()))}"
        steps.append((Column("renormalized", left, "renorm."), stages.final))
    return steps


def _share(value: float) -> str:
    return "≈ 0" if 0 < value < LEAST_SHARE else three(value)


def cut_summary(stages: SamplingStages, sampling: Sampling) -> str:
    """How many tokens each stage cuts, and how much probability."""
    if sampling.temperature == 0:
        return (
            "At temperature 0 the likeliest token has probability 1, so top-k and top-p cut "
            "nothing."
        )
    allowed = int(stages.logits.isfinite().sum())
    after_k = min(sampling.top_k or allowed, allowed)
    after_p = after_k if sampling.top_p is None else int((stages.top_p > 0).sum())
    lines = []
    if sampling.top_k is not None:
        lines.append(f"top-k cuts {_tokens(allowed - after_k, stages.cut_by_k)}")
    if sampling.top_p is not None:
        lines.append(f"top-p cuts {_tokens(after_k - after_p, stages.cut_by_p)}")
    cuts = f"Of {_tokens(allowed)}, {'; '.join(lines)}: " if lines else ""
    zero = after_p - stages.left
    rounded = f", {zero:,} {'rounds' if zero == 1 else 'round'} to probability 0" if zero else ""
    every = "All " if 1 < stages.left == len(stages.logits) else ""
    return f"{cuts}{every}{_tokens(stages.left)} can be sampled{rounded}."


def _tokens(count: int, probability: float | None = None) -> str:
    tokens = f"{count:,} token" if count == 1 else f"{count:,} tokens"
    return tokens if probability is None else f"{tokens} (probability {three(probability)})"


def _token_row(stages: SamplingStages, steps: Steps, token: int, name: str, mark: str) -> Row:
    logit = float(stages.logits[token])
    is_allowed = logit > -torch.inf
    top = float(stages.logits[stages.logits.isfinite()].abs().max())
    place = stages.rank(token)
    marks = [*([f"{place:,}."] if place > MOST_TOKENS else []), *([mark] if mark else [])]
    bar = logit / top if is_allowed and top else None
    cells = [
        Cell(three(logit), bar, "" if is_allowed else "cut"),
        *_probability_cells(steps, torch.tensor([token])),
    ]
    how = "" if stages.final[token] > 0 else "cut"
    return Row(name, cells, mark=" · ".join(marks), how=how, pickable=is_allowed)


def _other_tokens(stages: SamplingStages, steps: Steps, tokens: Sequence[int]) -> Row | None:
    """The row for all tokens that have none of their own: their summed probabilities."""
    others = torch.ones_like(stages.logits, dtype=torch.bool)
    others[list(tokens)] = False
    count = int(others.sum())
    if not count:
        return None
    cells = [Cell("", None, "muted"), *_probability_cells(steps, others.nonzero()[:, 0])]
    return Row(f"{count:,} others", cells, how="muted", is_token=False)


def _probability_cells(steps: Steps, tokens: Tensor) -> list[Cell]:
    """One cell per step: the bar is the probability, and the step that cuts says so."""
    cells, before = list[Cell](), 0.0
    for column, values in steps:
        value = float(values[tokens].sum())
        is_cut_here = column.name.startswith("top-") and before and not value
        text = "cut" if is_cut_here else _share(value)
        exact = value if 0 < value < LEAST_SHARE else None
        cells.append(Cell(text, value or None, "" if value else "cut", exact))
        before = value
    return cells


def choice_code(
    opened: OpenModel, text: str, path: list[int], sampling: Sampling, seed: int, step: int
) -> None:
    logits = continue_from(opened, text, path).all_logits[step][None]
    probabilities = choose_from(logits, sampling)
    generator = generator_at(seed, step, logits.shape[-1], sampling)
    token = int(sample(probabilities, sampling, generator))
    print(token, probabilities[0, token], probabilities.topk(5))

    # All tokens up to here at once, if each was sampled with this seed:
    ids, most = prompt_of(opened, text).ids, step + 1
    steps = generate(opened.model, ids, max_length=most, seed=seed, **vars(sampling))
    print([int(choice.ids[0]) for choice in steps])

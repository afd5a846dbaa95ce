"""The logit lens and direct logit attribution on screen, for the output of one position."""

from collections.abc import Sequence
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.information_flow import most_tokens
from explorer.analysis.logit_attribution import Contributions, contributions
from explorer.analysis.logit_lens import lens_logits, ranks_by_layer
from explorer.analysis.output_change import has_words
from explorer.app import widget_state
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.opened_model import OpenModel
from explorer.components.board import Cell, Column, Row, board
from explorer.inference.answers import option_name, score_sentence
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.text.visible_text import literal
from explorer.views.overview.pass_picture import embedding_words, lens_by_layer, too_long
from explorer.views.shared import widgets
from explorer.views.shared.edit_history import AFTER, BEFORE, BOTH
from explorer.views.shared.heads_grid import CROSS, heads_grid
from explorer.views.shared.tables import table

PREDICTIONS_SHOWN, LAYERS_IN_SIGHT, POSITIONS_SHOWN, OPTIONS = 5, 16, 64, 12


def draw_lens(
    context: PageContext,
    forward: ForwardPass,
    position: int,
    looks: Sequence[Sequence[str]] | None = None,
    *,
    before: bool = False,
    **drawing: Any,
) -> None:
    """The likeliest token after every layer at every position, the last layer on top.

    With `before`, the lowest row is that of the embedding, before the first layer.
    A click in a column chooses its position. Many positions are those around the chosen one.
    `looks` has the look of every cell, by layer and position, and `drawing` are more arguments of
    `board`, which replace the usual ones.
    """
    tokens = forward.last_stack_tokens
    if len(tokens) > most_tokens(forward):
        st.caption(too_long(forward))
        return
    places = shown_positions(len(tokens), position)
    rows = []
    by_level = lens_words(context.opened, forward)[not before :]
    for level, words in reversed([*enumerate(by_level)]):
        cells = [Cell(*words[at], looks[level][at] if looks else "") for at in places]
        name = f"layer {level - before}" if level >= before else "start"
        rows.append(Row(name, cells, is_token=False))
    place = "In place of" if forward.config.kind == "encoder" else "After"
    edited = ", with the interventions" if forward.edits else ""
    usual = {
        "key": "edited_lens" if forward.edits else "lens",
        "title": f"{context.called} · Likeliest token after each layer{edited}",
        "idle": f"{'Start: the embedding. ' * before}Choose a position by its column.",
        "column": position - places.start,
    }
    board(
        [Column(text_of(tokens[at])) for at in places],
        rows,
        corner=place.lower(),
        sentence=f"{place} {{column}}, {{row}}: {{value}}, probability {{share}}",
        coloured=True,
        on_pick_column=lambda column: widget_state.put("expected_at", places[column]),
        **(usual | drawing),
    )
    if len(places) < len(tokens):
        st.caption(f"{len(places)} of {len(tokens):,} positions are drawn.")


def shown_positions(count: int, position: int) -> range:
    """The positions that are drawn of so many: those around one of them."""
    first = max(0, min(position - POSITIONS_SHOWN // 2, count - POSITIONS_SHOWN))
    return range(first, min(count, first + POSITIONS_SHOWN))


def lens_words(opened: OpenModel, forward: ForwardPass) -> list[list[tuple[str, float]]]:
    """The likeliest token and its probability, by position, of the embedding and each layer."""
    rows = [row for _, rows in sorted(lens_by_layer(opened, forward)) for row in rows]
    return [embedding_words(opened, forward), *rows]


def changed_words(opened: OpenModel, before: ForwardPass, after: ForwardPass) -> list[list[str]]:
    """The looks of the grid of `after`: where its likeliest token is not that of `before`."""
    both = zip(lens_words(opened, before), lens_words(opened, after), strict=True)
    return [["changed" * (a[0] != b[0]) for a, b in zip(*rows, strict=True)] for rows in both]


def lens_of(opened: OpenModel, forward: ForwardPass, position: int) -> Tensor:
    """The logits of every residual stream, (layers + 1, options), computed once."""
    key = "lens", *forward.key, position
    return cached(opened, key, lambda: lens_logits(forward.trace, position))


def draw_passes(context: PageContext, position: int, edited: EditedPass, which: str) -> None:
    """The grid and the table of the pass before the interventions, after them, or both."""
    opened, both = context.opened, {BEFORE: context.forward, AFTER: edited.forward}
    passes = {name: forward for name, forward in both.items() if which in (name, BOTH)}
    for name, place in zip(passes, widgets.side_by_side(*[1] * len(passes)), strict=True):
        forward = passes[name]
        with place:
            if edited.applied:
                st.markdown(f"**{name} the interventions**")
            if has_words(opened.config):
                is_after = name == AFTER and len(forward.last_stack_tokens) <= most_tokens(forward)
                looks = changed_words(opened, context.forward, forward) if is_after else None
                draw_lens(context, forward, position, looks, before=True)
            logits = lens_of(opened, forward, position)
            draw_layer_predictions(opened, logits, context.choice.layer)
    if AFTER in passes and has_words(opened.config):
        st.caption("A frame marks a cell whose likeliest token is another one than before.")


def draw_layer_predictions(opened: OpenModel, logits: Tensor, layer: int) -> None:
    """A row per layer of `logits` (layers + 1, options), with the rank of the output.

    The rank after the chosen `layer` is also said in a sentence.
    """
    steps = ["start", *(f"layer {n}" for n in range(len(logits) - 1))]
    config = opened.config
    scores, output = config.scores(logits.double()), int(logits[-1].argmax())
    best = scores.topk(min(PREDICTIONS_SHOWN, logits.shape[-1]), -1)
    by_rank = zip(best.indices.T.tolist(), best.values.T.tolist(), strict=True)
    columns = {
        f"{rank}.": [f"{option_text(opened, i)}  {three(v)}" for i, v in zip(*both, strict=True)]
        for rank, both in enumerate(by_rank, 1)
    }
    ranks = [f"{rank:,}" for rank in ranks_by_layer(logits, output)]
    after = min(layer, len(ranks) - 2)
    name = literal(option_text(opened, output))
    then = f"rank {ranks[after + 1]} after layer {after}, rank {ranks[-1]} at the end"
    st.markdown(f"**Output: {name}**, {then}")
    table({"after": steps, "its rank": ranks, **columns}, most_rows=LAYERS_IN_SIGHT)
    about = f"{score_sentence(config)} " if config.head == "classifier" else ""
    st.caption(
        f"{about}The output head is trained on the last layer only, so read its answers after "
        "earlier layers with care."
    )


def option_text(opened: OpenModel, index: int) -> str:
    """The name of a token or a class in tables."""
    name = option_name(opened, index)
    return name if opened.config.head == "classifier" else text_of(name)


def draw_logit_attribution(context: PageContext, position: int, logits: Tensor) -> int:
    """One cell per head and feed-forward layer, and next to them the sums that give the logit.

    `logits` (options,) are those of the pass. Returns the index of the token or class.
    """
    opened, at = context.opened, context.choice
    best = logits.topk(min(OPTIONS, len(logits))).indices.tolist()
    names = [f"{option_text(opened, option)} ({option})" for option in best]
    st.markdown("**What each part of the model adds to a logit** (the score before the softmax)")
    picked = one_of("logit_of", names, as_list=True, width=320)
    option, forward = best[names.index(picked)], context.forward
    key = "contributions", at.text, at.pair, position, option
    terms = cached(opened, key, lambda: contributions(forward, position, option))
    grid, numbers = widgets.side_by_side(6, 4)
    with grid:
        title = f"{context.called} · Direct logit attribution of “{picked}”"
        heads_grid(
            context,
            torch.cat([*terms.heads.values(), terms.feed_forward[:, None]], 1),
            key="made_of",
            title=title,
            parts=tuple(terms.heads),
            unit="logits",
            scale="diverging",
        )
        crosses = ", “cross” one of cross-attention" * (CROSS in terms.heads)
        st.caption(f"A number is a head{crosses}; MLP is the feed-forward layer. Click a head.")
    with numbers:
        st.markdown("**Sum**")
        rows = sums(terms)
        column = {"logits": [three(value) for value in rows.values()]}
        table({"what": list(rows), **column}, right=column)
        source = "of the forward pass" if terms.in_pass else "from the last residual stream"
        error = terms.difference / (abs(terms.logit) or 1.0)
        widgets.check(f"The logit {source} as the sum of its parts", error)
        st.caption("Biases are the same for any text: those of norms (β), W_O and the output head.")
    return option


def sums(terms: Contributions) -> dict[str, float]:
    """The terms whose sum is the logit, in the order in which they enter the residual stream."""
    return {
        **{f"embedding: {name}": value for name, value in terms.embedding.items()},
        **{
            f"all heads{' of cross-attention' * (part == CROSS)}": float(values.sum())
            for part, values in terms.heads.items()
        },
        "all feed-forward layers": float(terms.feed_forward.sum()),
        "biases": terms.constant,
        "logit": terms.total,
    }


def lens_code(forward: ForwardPass, position: int, option: int) -> None:
    logits = lens_logits(forward.trace, position)
    print(forward.config.scores(logits).topk(min(5, logits.shape[-1])))  # a row per stream

    terms = contributions(forward, position, option)
    print(terms.heads, terms.feed_forward, terms.embedding, terms.constant)
    print(terms.total, terms.logit)


def edited_lens_code(edited: EditedPass, position: int) -> None:
    after = lens_logits(edited.forward.trace, position)
    print(edited.forward.config.scores(after).topk(min(5, after.shape[-1])))  # a row per stream

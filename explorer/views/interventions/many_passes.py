"""Many passes, each with one more intervention: every head ablated or patched, or edges cut."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import ablate_every_head, shared_tokens
from explorer.analysis.batch_edits import AblateHeads, PatchHeads
from explorer.analysis.batched_passes import RecordedPass, multiplications, recorded_pass
from explorer.analysis.map_faithfulness import DRAWS, TooManyEdgesError, cutting_cost, faithfulness
from explorer.analysis.output_change import divergence, logits_at
from explorer.app import widget_state
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of, text_field, whole
from explorer.catalog.attention_parts import map_title, site
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import edge_cut_curves
from explorer.charts.figure_data import WINDOW
from explorer.components.chart import chart
from explorer.inference.answers import option_name, score_words
from explorer.inference.core_edits import NotApplicableError, head_output, same_length_pass
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.model_inputs import ids_of
from explorer.interventions.edits import AblateHead
from explorer.text.visible_text import in_quotes, literal
from explorer.views.interventions.intervention_effects import NO_HEAD, base_words
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import add_edit
from explorer.views.shared.heads_grid import heads_grid
from explorer.views.shared.measurement import Report, measurement
from explorer.views.shared.tables import strongest_table
from models.interventions import Edit

THIS_HEAD, WHOLE_LAYER = "This head", "The whole layer"
NOTHING = 1e-9
"""A change of the output, in nats or squared, that is rounding."""
ABLATED, PATCHED = "Ablated", "Patched"
SELECTS, ABLATES = "Selects the head", "Ablates the head"
TOO_LONG_FOR_HEADS = "One pass for every head of this model takes too long: shorten the text."


def draw_head_grid(context: PageContext, edited: EditedPass, position: int) -> Script | None:
    """One cell per head, then the largest effects; returns the code of the chosen layer."""
    opened, at = context.opened, context.choice
    if opened.config.head == "none":
        st.text(NO_HEAD)
        return None
    picture = st.container()
    with st.container(horizontal=True):
        way = one_of("heads_are", (ABLATED, PATCHED))
        words = score_words(opened.config)
        logit_change = f"Change in the top {words.logit}"
        of_output = one_of("number", (words.divergence, logit_change)) == words.divergence
        one_of("click", (SELECTS, ABLATES))
    text, source = "", None
    if way == PATCHED:
        text = text_field("heads_from").strip()
        try:
            source = same_length_pass(opened, context.forward, at.part, text)
        except NotApplicableError as error:
            st.text(str(error))
            return None
    passes = opened, context.forward, edited
    lines = script(heads_code, *passes, position, at.part, at.layer, text)
    base, part = recorded_pass(edited, position), edited.forward.part(at.part)
    if source is not None and opened.config.kind == "decoder":
        shared = shared_tokens(*(ids_of([forward.target]) for forward in (edited.forward, source)))
        base = replace(base, from_position=shared)
    costs = [multiplications(base, at.part, layer) for layer in range(part.layers)]
    with picture:
        changes = measurement(
            opened,
            "heads",
            ("every head", *edited.key, at.part, position, text),
            lambda report: _measure(base, at.part, part.layers, source, report),
            cost=part.heads * sum(costs),
            doing="Every head, by layer",
            too_long=TOO_LONG_FOR_HEADS,
        )
    if changes is None:
        return lines
    logits = "" if words.logit == "value" else "logits"
    values, unit = (changes[0], words.unit) if of_output else (changes[1], logits)
    top = option_name(opened, int(logits_at(base.trace, position).argmax()))
    whole = "KL(before ‖ after)" if words.unit else "squared change of the output"
    what = whole if of_output else f"change in the {words.logit} of {in_quotes(top)}"
    how = "patched from the source sentence" if text else "ablated to zero"

    def pick(layer: int, head: int, part: str) -> None:
        choose_head(layer, head, part)
        # The reader may have chosen it since this was drawn: both may arrive at once.
        if widget_state.get("click") == ABLATES:
            add_edit(AblateHead(at.part, layer, head))

    with picture:
        grid, numbers = widgets.side_by_side(6, 4)
    with grid:
        heads_grid(
            context,
            values,
            key="heads_off",
            title=map_title(context.called, at.part, f"Each head alone {how}, {what}"),
            on_pick=pick,
            unit=unit,
            scale="sequential" if of_output else "diverging",
        )
    where = f"{base_words(edited)}: {literal(what)} at the output position."
    st.caption(f"Each head alone {how}, {where}")
    with numbers:
        axes = {"layer": range(part.layers), "head": range(part.heads)}
        strongest_table(values, axes, unit)
        widgets.page_links("circuits")
    return lines


def _measure(
    base: RecordedPass, part: str, layers: int, source: ForwardPass | None, report: Report
) -> Tensor:
    """(2, layers, heads): the divergence, and the change in the logit of the likeliest option."""
    before = logits_at(base.trace, base.position)
    top = int(before.argmax())
    patched: Callable[[int], Tensor] | None = None
    if source is not None:
        heads = range(base.model.config.n_heads)

        def patched(layer: int) -> Tensor:
            return torch.stack([head_output(source, part, layer, head) for head in heads])

    rows = []
    for after in ablate_every_head(base, part, layers, patched):
        whole = divergence(base.model.config, before, after)
        rows.append(torch.stack([whole, (after - before)[:, top].double()]))
        report(len(rows) / layers)
    return torch.stack(rows, dim=1)


def heads_code(
    opened: OpenModel,
    forward: ForwardPass,
    edited: EditedPass,
    position: int,
    part: str,
    layer: int,
    text: str,
) -> None:
    at, heads = f"{site(part, layer)}.head_out", range(forward.config.n_heads)
    edits: list[Edit] = [AblateHeads(at, (head,)) for head in heads]
    if text:
        source = same_length_pass(opened, forward, part, text)
        values = torch.stack([head_output(source, part, layer, head) for head in heads])
        edits = [PatchHeads(at, (head,), values) for head in heads]

    passed, after = edited.forward, []
    for edit in edits:
        how = [*edited.core_edits, edit]
        again = rerun(opened, passed, passed.source, passed.target, how)
        after.append(logits_at(again.trace, position))
    before = logits_at(passed.trace, position)
    changes = divergence(forward.config, before, torch.stack(after))
    print(changes)  # nats unless a regression, a number for each head of the layer


def draw_faithfulness(context: PageContext, edited: EditedPass, position: int) -> Script | None:
    """The divergence of the output by the number of cut edges, as a chart; returns the code."""
    opened, at = context.opened, context.choice
    if opened.config.head == "none":
        st.text(NO_HEAD)
        return None
    picture = st.container(key="faithfulness")
    with st.container(horizontal=True, vertical_alignment="center"):
        scope = one_of("edges_of", (THIS_HEAD, WHOLE_LAYER))
        seed = whole("draw_seed", width=160)
    head = at.head if scope == THIS_HEAD else None
    which = at.part, at.layer, head
    lines = script(faithfulness_code, edited, position, *which, seed)
    base = recorded_pass(edited, position)
    try:
        cost = cutting_cost(base, *which)
    except TooManyEdgesError as error:
        st.text(str(error))
        return lines
    with picture:
        cuts = measurement(
            opened,
            "cuts",
            ("faithfulness", *edited.key, *which, position, seed),
            lambda report: faithfulness(base, *which, seed, report=report),
            cost=cost,
            doing="Cutting edges",
        )
    if cuts is None:
        return lines
    if not cuts.counts:
        st.text("No query attends to any key here, so there is no edge to cut.")
        return lines
    words = score_words(opened.config)
    of = f"layer {at.layer}" if head is None else f"layer {at.layer}, head {head}"
    if cuts.random.max() < NOTHING > cuts.strongest.max():
        picture.text(
            f"Nothing changes: with all {cuts.edges:,} edges of {of} cut, or any of them, the "
            f"output stays the same {base_words(edited)}. Choose another head."
        )
        return lines
    with picture:
        title = "Output against the number of edges cut"
        scale = "KL in nats" if words.unit else words.divergence
        spec = edge_cut_curves(cuts.counts, cuts.strongest, cuts.random, scale)
        chart(spec, height=WINDOW, key="edges_cut", title=title)
    st.caption(
        f"Attention weights of {of} set to zero, the strongest first or drawn at random (line: "
        f"mean of {DRAWS} draws; band: their range), {base_words(edited)}. There are "
        f"{cuts.edges:,} edges; all are cut at the last point. If the strongest edges change the "
        "output no more than random ones, the map does not show what matters here."
    )
    return lines


def faithfulness_code(
    edited: EditedPass, position: int, part: str, layer: int, head: int | None, seed: int
) -> None:
    cuts = faithfulness(recorded_pass(edited, position), part, layer, head, seed)
    for count, strongest, random in zip(
        cuts.counts, cuts.strongest.tolist(), cuts.random.tolist(), strict=True
    ):
        print(count, strongest, random)  # nats unless a regression, after so many edges are cut

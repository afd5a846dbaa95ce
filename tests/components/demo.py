"""Every view on a page of its own: `streamlit run tests/components/demo.py`.

A page shows a view of all data that it has to stand, one under another, each under a key of its
own. What it needs alone it takes from the address, such as /demo_matrix?show=1024. Each page ends
in what its view has told and in how often it has run.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.analysis.block_inside import block_inside
from explorer.analysis.information_flow import route
from explorer.analysis.thumbnails import thumbnails_of_weights
from explorer.app import streamlit_patches
from explorer.components import mounting
from explorer.components.board import Cell, Column, Row, board
from explorer.components.chips import chips
from explorer.components.circuit_map import CircuitChoice, CircuitMap, circuit_map
from explorer.components.film import Curve, Moment, film
from explorer.components.film import encode as encode_film
from explorer.components.inspect import inspect
from explorer.components.lines import lines
from explorer.components.matrix import MatrixLabels, matrix
from explorer.components.miniature import miniature
from explorer.components.pass_map import (
    MapAnswer,
    PassMap,
    block_panel,
    encode,
    encode_block,
    lens_rows,
    other_answers,
    pass_map,
)
from explorer.components.picker import EveryHead, RankedHead, cells, grid, ranked
from explorer.components.player import player
from explorer.components.stage_list import StageSection, stage_list
from explorer.components.tree import Node, tree
from explorer.text.token_labels import texts
from explorer.views.overview import map_choices, pass_picture
from tests.components import flows
from tests.components.flows import numbered
from tests.components.invented_circuit import invented
from tests.components.samples import (
    EMOJI,
    FILM_STEPS,
    FRENCH,
    NEARLY,
    SENTENCE,
    STRANGE,
    STRANGE_SENTENCE,
    WORDS,
    attention,
    causal,
    characters,
    heads,
    words,
)
from tests.text.test_number_format import TIES

state, n = st.session_state, len(WORDS)
MANY = [f"{WORDS[at % n]}{at}" for at in range(1024)]
SENTENCE_OF = "{row}, {column}: {value}"
SPOKEN: dict[str, Any] = {"corner": "token", "idle": "Point at a cell.", "sentence": SENTENCE_OF}


def choose(*told: Any) -> None:
    state.told = told


def told(at_first: Any) -> Any:
    return state.get("told", at_first)


def demo_everything(show: str) -> None:
    """Every view once, of tokens that would be markup, or are read from right to left."""
    size, name = len(STRANGE), STRANGE[0]
    weights, each = attention(size), heads(2, 4, size, size)
    shown = texts(STRANGE)
    board([Column("is")], [Row(at, [Cell(at)]) for at in shown], key="board", title=name, **SPOKEN)
    picks: dict[str, Any] = {"selected": (0, 0), "on_pick": choose}
    cells(weights, shown, shown, key="cells", title=name, unit="weight", **picks)
    chips(words(STRANGE_SENTENCE), key="chips", text=STRANGE_SENTENCE)
    show_circuit(invented(STRANGE), key="circuit_map")
    show_film(3, "everything", name)
    grid(each, key="grid", title=name, **picks)
    inspect(weights, STRANGE, STRANGE, key="inspect", title=name)
    lines(each[0], STRANGE, STRANGE, key="lines", title=name)
    matrix(weights, STRANGE, STRANGE, key="matrix", title=name)
    flow = flows.picture(flows.made_up(2, size), {"decoder": STRANGE})
    show_miniature(flow, "miniature")
    show_flow(flow, "pass_map")
    player(name, 3, 0, key="player", on_move=choose)
    items = [RankedHead(0, at, name, name, weights) for at in range(2)]
    ranked(items, key="ranked", title=name, **picks)
    section = StageSection(name, tuple(shown), ("",) * size, (False,) * size, 1.0, name)
    how: dict[str, Any] = {"title": name, "note": name}
    stage_list([section], key="stage_list", at=0, on_move=choose, **how)
    nodes = [Node(at - 1, at, 0, token, "1", "{token} is kept") for at, token in enumerate(STRANGE)]
    tree(nodes, key="tree", title=name, idle="", rows=1, marked=[0], on_pick=choose)


def demo_rounded(show: str) -> None:
    """Numbers that are halves of a last digit, and one that would be a half if rounded twice."""
    ties, names = torch.tensor(TIES).reshape(3, 3), list("abc")
    how: dict[str, Any] = {"title": "demo", "unit": "", "selected": (0, 0), "on_pick": choose}
    matrix(ties, names, names, key="matrix")
    cells(ties, names, names, key="cells", **how)
    matrix(torch.tensor([[NEARLY["matrix"]]]), ["a"], ["a"], key="nearly_matrix")
    cells(torch.tensor([[NEARLY["cells"]]]), ["a"], ["a"], key="nearly_cells", **how)


def demo_board(show: str) -> None:
    both, names = [Cell("0.5", 0.5), Cell("cut", None, "cut")], ["the", "<b>x</b>", "\u202eabc"]
    rows = [Row(name, both, pickable=at < 2) for at, name in enumerate(names)]
    columns = [Column("before", "sums to 1"), Column("after")]
    board(columns, rows, key="board", title="demo", pick="Take {row}", on_pick=choose, **SPOKEN)
    columns = [Column(str(at)) for at in range(60)]
    rows = [Row("in", [Cell(f"t{at}") for at in range(60)], is_token=False)]
    board(columns, rows, key="wide", title="demo", narrow=True, on_pick=choose, **SPOKEN)


def demo_cells(show: str) -> None:
    long = ["<s>", "the", "cat", "antidisestablishmentarianism", "sat", "on", "the", "mat"]
    for key, values in {
        "cells": torch.arange(8).reshape(2, 4) / 100,
        "diverging": torch.tensor([[-2.0, 0.0, torch.nan]]),
        "large": torch.rand(144, 144),
        "long": torch.arange(64).reshape(8, 8) / 64,
    }.items():
        names = [[str(at) for at in range(size)] for size in values.shape]
        rows, columns = [long, long] if key == "long" else names
        scale = "diverging" if key == "diverging" else "sequential"
        how: dict[str, Any] = {"title": "demo", "unit": "weight", "on_pick": choose}
        selected = told((0, 1)) if key == "cells" else (0, 0)
        cells(values, rows, columns, key=key, selected=selected, scale=scale, **how)


def demo_chips(show: str) -> None:
    if show == "long":
        text = ("to be or not to be " * 6000)[:20_000]
        chips(characters(text), key="long", text=text, height=400)
        return
    picked = chips(words(SENTENCE), key="chips", text=SENTENCE, highlight=4, on_pick=lambda _: None)
    st.text(f"picked {picked}")
    chips(MANY[:400], key="later", highlight=300, later=301, height=94)
    chips(EMOJI, key="emoji")
    chips(["a", "b", "c"], key="shaded", values=[-1.0, 2.0, 0.5], unit="norm")
    chips(words("the cat"), key="two", below=words("the dog"), highlight=[2])


def show_film(tokens: int, run: str, said: str = "") -> None:
    """Five moments of a map whose cells say which."""
    names = [str(at) for at in range(tokens)]

    def draw(at: int) -> None:
        weights = torch.full((tokens, tokens), at / 8)
        matrix(weights, names, names, key="film_map", title="map", height=240)

    curves = (
        Curve("loss", [(step, 4.0 / (1 + step)) for step in FILM_STEPS]),
        Curve("score", [(0, float("nan")), (1, 0.25), (100, 1.0)], share=True),
    )
    moments = []
    for at, step in enumerate(FILM_STEPS):
        with mounting.filmed() as messages:
            draw(at)
        moments.append(Moment(step, messages, [("Writes", said or f"<i>{step}</i>")]))
    message = encode_film(moments, 4, "film", run, "film_step", curves, ((10, "forms"),))
    film(message, key="film", title="demo", curves=curves, count=len(FILM_STEPS), on_compare=choose)
    draw(4)


def demo_film(show: str) -> None:
    show_film(3, show)
    st.text_input("Words", key="words")


def demo_grid(show: str) -> None:
    values = heads(2, 4, 12, 12) * causal(12)
    unknown = values.clone()
    unknown[1, 2] = torch.nan
    grid(values, selected=told((0, 0)), key="grid", title="demo", on_pick=choose)
    deep = heads(30, 9, 14, 14) * causal(14)
    others = {"large": heads(12, 12, 128, 128), "unknown": unknown, "deep": deep}
    for key, shown in others.items():
        grid(shown, selected=(0, 0), key=key, title="demo", on_pick=choose)


def every(show: str) -> tuple[Tensor, Tensor]:
    """Weights (2, 4, tokens, tokens) with all that is hard to send: nothing, ties, next to nothing.

    As few that a matrix has them in single precision, or more.
    """
    tokens = 70 if show == "many" else 12
    weights = heads(2, 4, tokens, tokens) * causal(tokens)
    weights[0, 1, :3, 0] = torch.tensor([0.03125, 0.09375, 1e-6])
    weights[1, 2, 5] = torch.nan
    weights[1, 3, 0, 0] = 1 + 1e-7
    return weights, torch.stack([causal(tokens), causal(tokens) & ~causal(tokens).tril(-4)])


def demo_every(show: str) -> None:
    weights, allowed = every(show)
    labels = MANY[: weights.shape[-1]]
    small = replace(thumbnails_of_weights(weights), exact=weights, allowed=allowed)
    layer, head = told((0, 0))
    whose = EveryHead("demo", ("demo, layer ", ", head "))
    grid(small, selected=(layer, head), key="grid", title="demo", on_pick=choose, every=whose)
    text, of = f"demo, layer {layer}, head {head}", "another" if show == "another" else "demo"
    how: dict[str, Any] = {"allowed": allowed[layer], "title": text, "head": (of, layer, head)}
    matrix(weights[layer, head], labels, labels, key="matrix", top=1.0, **how)


def demo_inspect(show: str) -> None:
    weights, empty, held = attention(n), attention(n), told(((0, 4),))[0]
    empty[2], empty[3, 4] = 0, torch.nan
    inspect(weights, WORDS, WORDS, key="inspect", title="demo", allowed=causal(n))
    inspect(heads(len(FRENCH), n), FRENCH, WORDS, key="cross", title="demo", same=False)
    inspect(attention(len(EMOJI)), EMOJI, EMOJI, key="emoji", title="demo")
    inspect(weights, WORDS, WORDS, key="held", title="demo", pinned=held, on_pin=choose)
    inspect(empty, WORDS, WORDS, key="empty", title="demo")


def demo_lines(show: str) -> None:
    if show == "long":
        lines(heads(2, 128, 128), MANY[:128], MANY[:128], key="lines", title="demo")
        return
    head = st.slider("Head", 0, 3, 1, key="head")
    lines(heads(4, 10, n), FRENCH, WORDS, key="cross", title="demo", drawn=[head])
    lines(heads(4, n, n), WORDS, WORDS, key="lines", title="demo")
    drawn, held = told(((1, 2), (0, 4)))
    how: dict[str, Any] = {"drawn": drawn, "pinned": held, "on_choice": choose}
    lines(heads(4, n, n), WORDS, WORDS, key="held", title="demo", **how)


def demo_matrix(show: str) -> None:
    """Matrices of few tokens, or a large one."""
    if show:
        size = int(show)
        matrix(attention(size), MANY[:size], MANY[:size], key="matrix", allowed=causal(size))
        return
    seed = st.slider("Seed", 0, 9, 0, key="seed")
    matrix(attention(n, seed), WORDS, WORDS, key="matrix", allowed=causal(n))
    difference = torch.randn(n, n, generator=torch.Generator().manual_seed(1))
    matrix(difference, WORDS, WORDS, key="difference", scale="diverging", unit="difference")
    how: dict[str, Any] = {"scale": "diverging", "exact": True, "places": [[3, 4], [12, 14]]}
    matrix(torch.tensor([[3000.0, 0.3], [0.05, 3e-8]]), ["a", "b"], ["a", "b"], key="exact", **how)
    unknown = attention(n)
    unknown[5] = torch.nan
    matrix(unknown, WORDS, WORDS, key="unknown", allowed=causal(n))
    matrix(attention(len(EMOJI)), EMOJI, EMOJI, key="emoji")
    values = torch.tensor([[0.8, 0.0], [0.1, 0.05]])
    ways: list[dict[str, Any]] = [{}, {"scaling": "row"}, {"scaling": "column"}, {"log": True}]
    for at, scaled in enumerate(ways):
        matrix(values, ["a", "b"], ["c", "d"], key=f"scaled{at}", height=190, **scaled)


def demo_held(show: str) -> None:
    """A matrix whose pinned cell the page knows, and one whose columns can be hidden."""
    if st.button("Hold the first"):
        choose((0, 0))
    matrix(attention(n), WORDS, WORDS, key="matrix", pinned=told(((3, 1),))[0], on_pin=choose)
    cut = torch.zeros(n, n, dtype=torch.bool)
    cut[0, 1] = True
    hide = partial(setattr, state, "hides")
    matrix(attention(n), WORDS, WORDS, key="cut", hidden=[2], cut=cut, on_hide=hide)
    st.text(f"hides {state.get('hides')}")


def demo_beside(show: str) -> None:
    """Pictures of different sizes and labels, in places of one size."""
    labels = [MANY[:15], MANY[:14], ["a", "antidisestablishmentarianism", "b"]]
    for key, beside in {
        "alone": [],
        "beside": [MatrixLabels(each, each) for each in labels],
    }.items():
        for at, (column, names) in enumerate(zip(st.columns(3), labels, strict=True)):
            with column:
                values = attention(len(names))
                matrix(values, names, names, key=f"{key}{at}", height=370, neighbours=beside)


def demo_pass_map(show: str) -> None:
    """The picture of a pass with block 0 of the last stack opened, until that is closed."""
    opened, forward = flows.passed(show or "grouped")
    picture = pass_picture.picture_of(opened, forward)
    names = [stack.name for stack in picture.stacks]
    last, answer = len(names) - 1, len(picture.flow.starts) - 1
    at_first = [answer, -1, -1, 0.005, last, 0, *[-1] * 5]
    what, value = told(("chosen", at_first))
    if what == "chosen" and value:
        state.held = value
    held = state.get("held", at_first)
    show_flow(picture, "pass_map", held, height=760)
    stack, layer = held[4:6]
    if stack >= 0:
        inside = block_inside(forward, names[stack], layer)
        heads = forward.config.n_heads
        message = encode_block(inside, picture.of, names, heads, map_choices.link_of_stage)
        block_panel("pass_map", message, picture.of, (stack, layer), 1)


MAPS: dict[str, Callable[[], PassMap]] = {
    **{kind: partial(flows.of_kind, kind) for kind in flows.KINDS},
    "words": lambda: flows.picture(flows.made_up(2, 6), {"decoder": WORDS[:6]}),
    "late": lambda: flows.picture(flows.made_up(2, 3), {"decoder": WORDS[:3]}, known=[2]),
    "deep": lambda: flows.picture(flows.made_up(30, 12), {"decoder": WORDS}),
    "emoji": lambda: flows.picture(flows.made_up(2, len(EMOJI)), {"decoder": EMOJI}),
    "unknown": lambda: flows.picture(
        flows.without_numbers(flows.made_up(2, 3)), {"decoder": WORDS[:3]}
    ),
    "one": lambda: flows.picture(flows.made_up(1, 1), {"decoder": WORDS[:1]}),
    "nothing": lambda: flows.picture(flows.nothing_across(3), {"decoder": WORDS[:3]}),
    "cut": lambda: flows.picture(flows.made_up(10, 90), {"decoder": numbered(90)}),
}


def show_flow(
    shown: PassMap,
    key: str,
    choice: Sequence[Any] = (),
    height: int = 460,
    appends: Sequence[bool] = (),
) -> None:
    asked = len(shown.flow.starts) - 1

    def hold(held: Any) -> None:
        state[f"{key} held"] = held
        choose("chosen", held)

    pass_map(
        encode(shown, key, "demo", asked, appends, most=24_000),
        key=key,
        title="demo",
        choice=state.get(f"{key} held") or choice or [asked, -1, -1, 0.005, -1, -1, *[-1] * 5],
        height=height,
        on_chosen=hold,
        on_go=partial(choose, "go"),
        appends=appends,
        on_append=partial(choose, "append"),
    )


def demo_flow(show: str) -> None:
    """Passes by their names, each under its name."""
    for name in (show or "one").split(","):  # what is told late comes without the address
        shown, key = MAPS[name](), name.replace(" ", "_")
        show_flow(shown, key, appends=[True, True, False] if name == "words" else [])
        if name == "words":
            show_flow(shown, "held", [1, 0, 0, 0.05, -1, -1, 0, 1, 2, 1, 2])
        if name == "late":
            late = [flows.answer(at) for at in range(3)]
            late[0] = MapAnswer("a0", [("a0", torch.nan)])
            other_answers(key, late, shown.of)
        if shown.has_lens:
            stack = shown.stacks[-1]
            for layer in reversed(range(len(shown.flow.stacks[stack.name]))):
                row = [(f"w{layer}-{at}", (layer + 1) / 100) for at in range(len(stack.tokens))]
                lens_rows(key, layer, [row], shown.of)


def show_miniature(shown: PassMap, key: str, lit: str = "attention") -> None:
    flow = shown.flow
    stack = list(flow.stacks)[-1]
    miniature(
        flow,
        route(flow, flow.starts[-1]),
        key=key,
        title="demo",
        parts=[("tokens", "Tokens"), ("attention", "Attention"), ("answer", "Answer")],
        lit=[lit],
        layer=(stack, len(flow.stacks[stack]) - 1),
        height=190,
        on_go=choose,
    )


def demo_miniature(show: str) -> None:
    """The pass in small, of models of several kinds and of made-up ones."""
    if st.button("Elsewhere"):
        choose("elsewhere", None)
    lit = "answer" if told(("", None))[0] == "elsewhere" else "attention"
    for name in ("words", "deep", "both", "deep encoder", "mean", "no head", "one", "nothing"):
        show_miniature(MAPS[name](), name.replace(" ", "_"), lit)


def show_circuit(shown: CircuitMap, key: str, selection: CircuitChoice | None = None) -> None:
    selection = selection or CircuitChoice(len(shown.edges))
    circuit_map(shown, key=key, title="demo", selection=selection, on_select=choose)


def demo_circuit_map(show: str) -> None:
    """Circuits; what is chosen in the first comes back."""
    shown = invented()
    if st.button("Another head"):
        choose(CircuitChoice(len(shown.edges), (5, 0)))
    chosen = told((None,))[0]
    if chosen == CircuitChoice(len(shown.edges), (1, 2)):  # other scores come with the answer
        shown = replace(shown, difference=9.0)
    show_circuit(shown, "circuit_map", chosen)
    show_circuit(invented(MANY[:90]), "long")
    show_circuit(invented(layers=30), "deep")
    show_circuit(replace(shown, place=None), "class")


def demo_ranked(show: str) -> None:
    for key, weights in {
        "ranked": heads(2, 4, 12, 12) * causal(12),
        "many": heads(4, 6, 16, 16),
    }.items():
        layers, count = weights.shape[:2]
        places = [(layer, head) for layer in range(layers) for head in range(count)]
        items = [
            RankedHead(*place, f"{at} of {len(places)}", f"{0.9 - at / 100:.3f}", weights[place])
            for at, place in enumerate(places, 1)
        ]
        ranked(items, key=key, title="demo", selected=told((0, 0)), on_pick=choose)


def demo_stage_list(show: str) -> None:
    layers = 30 if show == "long" else 2
    if st.button("To the end"):
        choose(2 + 3 * layers)
    stages, on_line = ("Queries", "Add", "Hidden"), (False, True, False)
    branches = ("self-attention", "self-attention", "feed-forward")
    sections = [
        StageSection("<i>Embedding</i>", ("Tokens", "Sum"), ("", ""), (False, True), 1.0, "1.00"),
        *(StageSection(f"Layer {at}", stages, branches, on_line, 2, "") for at in range(layers)),
        StageSection("Answer", ("Logits",), ("",), (False,), 0.0, ""),
    ]
    named = {"key": "stage_list", "title": "demo", "note": "a note"}
    stage_list(sections, at=told((0,))[0], on_move=choose, **named)
    st.text_input("Words", key="words")
    if show == "beside":
        matrix(attention(n), WORDS, WORDS, key="matrix")


def demo_player(show: str) -> None:
    """Steps that end, and steps that grow up to seven; the figure is the step that is shown."""
    count = state.get("count", 5)

    def move(to: int) -> None:
        state.count = max(count, to + 1)
        choose(to)

    grows = show == "grows" and count < 7
    player("Step", count, told((0,))[0], key="player", on_move=move, keys=True, grows=grows)
    state.seen = [*state.get("seen", []), told((0,))[0]]
    st.text(f"seen {state.seen}")
    st.text_input("Words", key="words")
    st.button("Another")


def demo_tree(show: str) -> None:
    nodes = [
        Node(-1, 0, 0, "start", "", "the start", "start"),
        Node(0, 1, 0, "a", "0.5", "{token} is kept"),
        Node(0, 1, 1, "<i>b</i>", "0.25", "{token} is cut", "cut"),
        Node(1, 2, 0, "c", "0.1", "{token} is forced", "forced"),
    ]
    long = [Node(at - 1, at, 0, f"n{at}", "1.00", "{token}") for at in range(40)]
    how: dict[str, Any] = {"title": "demo", "idle": "Point at a node.", "rows": 3}
    tree(nodes, key="tree", marked=[0, 1], follows=False, on_pick=choose, **how)
    tree(long, key="long", marked=range(40), follows=True, on_pick=choose, **how)


def index() -> None:
    """Between two demos; whoever comes from here has seen and chosen nothing."""
    st.title("Views")
    state.clear()
    state.runs = -1


def page_of(demo: Callable[[str], None]) -> st.Page:
    def shown() -> None:
        mounting.begin()
        demo(st.query_params.get("show", ""))

    return st.Page(shown, title=demo.__name__, url_path=demo.__name__)


streamlit_patches.install_in_server()
DEMOS = [demo for name, demo in list(globals().items()) if name.startswith("demo_")]
st.set_page_config(layout="wide")
st.navigation([st.Page(index, default=True), *map(page_of, DEMOS)]).run()
state.runs = state.get("runs", 0) + 1
st.text(f"told {state.get('told')}, run {state.runs}")

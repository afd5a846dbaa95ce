"""Every view on a page of its own: `streamlit run tests/components/demo.py`.

A page takes what it shows from the address, such as /demo_matrix?show=strange, and its view's
key is the view's name. Each page ends in what its view has told and in how often it has run.
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
from explorer.components import chips, grid, lines, matrix, mounting
from explorer.components.board import Cell, Column, Row, Words, board
from explorer.components.cells import cells
from explorer.components.circuit_map import Held, circuit_map
from explorer.components.film import Curve, Moment, film
from explorer.components.film import encode as encode_film
from explorer.components.grid import EveryHead
from explorer.components.inspect import inspect
from explorer.components.matrix import Beside
from explorer.components.miniature import miniature
from explorer.components.pass_map import (
    MapAnswer,
    PassMap,
    encode,
    lens_rows,
    other_answers,
    pass_map,
)
from explorer.components.pass_map.block_panel import block_panel, encode_block
from explorer.components.player import player
from explorer.components.ranked import Item, ranked
from explorer.components.stage_list import StageSection, stage_list
from explorer.components.title import title
from explorer.components.tree import Node, tree
from explorer.text.token_labels import Label
from explorer.views.overview import doors, pass_picture
from tests.components import flows
from tests.components.invented_circuit import invented
from tests.components.passed import passed
from tests.components.samples import (
    EMOJI,
    FRENCH,
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


STEPS = (0, 1, 2, 10, 100)
"""Of the demo's film."""


def choose(*told: Any) -> None:
    state.told = told


def told(at_first: Any) -> Any:
    return state.get("told", at_first)


def numbered(size: int) -> list[str]:
    return [f"{WORDS[i % n]}{i}" for i in range(size)]


def demo_board(show: str) -> None:
    rows = [
        Row(name, [Cell("0.5", 0.5), Cell("cut", None, "cut")], pickable=at < 2)
        for at, name in enumerate(["the", "<b>x</b>", "\u202eabc"])
    ]
    columns = [Column("before", "sums to 1"), Column("after")]
    if show == "wide":
        columns = [Column(str(at)) for at in range(60)]
        rows = [Row("in", [Cell(f"t{at}") for at in range(60)], is_token=False)]
    spoken = Words("token", "Point at a cell.", "{row}, {column}: {value}", "Take {row}")
    board(columns, rows, spoken, key="board", title="demo", narrow=show == "wide", on_pick=choose)


def demo_cells(show: str) -> None:
    values = {
        "ties": torch.tensor(TIES).reshape(3, 3),
        "nearly": torch.tensor([[0.382497]]),
        "small": torch.arange(8).reshape(2, 4) / 80,
        "diverging": torch.tensor([[-2.0, 0.0, torch.nan]]),
        "large": torch.rand(144, 144),
        "words": torch.arange(64).reshape(8, 8) / 64,
    }[show]
    rows, columns = ([str(at) for at in range(size)] for size in values.shape)
    if show == "words":
        long = "antidisestablishmentarianism"
        rows = columns = ["<s>", "the", "cat", long, "sat", "on", "the", "mat"]
    cells(
        values,
        rows,
        columns,
        key="cells",
        title="demo",
        selected=told((0, 1)),
        on_pick=choose,
        unit="weight",
        scale="diverging" if show == "diverging" else "sequential",
    )


def demo_chips(show: str) -> None:
    if show == "words":
        picked = chips(
            words(SENTENCE), key="chips", text=SENTENCE, highlight=4, on_pick=lambda place: None
        )
        st.text(f"picked {picked}")
    elif show == "later":
        chips(numbered(400), key="chips", highlight=300, later=301, height=94)
    elif show == "strange":
        chips(words(STRANGE_SENTENCE), key="chips", text=STRANGE_SENTENCE)
        chips(["plain", "strings", "too"], key="plain")
    elif show == "emoji":
        chips(EMOJI, key="chips")
    elif show == "shaded":
        chips(["a", "b", "c"], key="chips", values=[-1.0, 2.0, 0.5], unit="norm")
    elif show == "two":
        chips(words("the cat"), key="chips", below=words("the dog"), highlight=[2])
    else:
        text = ("to be or not to be " * 6000)[: int(show)]
        chips(characters(text), key="chips", text=text, height=400)


def demo_film(show: str) -> None:
    """Five moments of a map whose cells say which; `show` is its number of tokens."""
    tokens = [str(at) for at in range(int(show or 3))]

    def draw(at: int) -> None:
        weights = torch.full((len(tokens), len(tokens)), at / 8)
        matrix(weights, tokens, tokens, key="film_map", title="map", height=240)

    curves = (
        Curve("loss", [(step, 4.0 / (1 + step)) for step in STEPS]),
        Curve("score", [(0, float("nan")), (1, 0.25), (100, 1.0)], share=True),
    )
    moments = []
    for at, step in enumerate(STEPS):
        with mounting.filmed() as messages:
            draw(at)
        moments.append(Moment(step, messages, [("Writes", f"<i>{step}</i>")]))
    message = encode_film(moments, 4, "demo", "run", "film_step", curves, ((10, "forms"),))
    film(message, key="film", title="demo", curves=curves, count=len(STEPS), on_compare=choose)
    draw(4)
    st.text_input("Words", key="words")


def demo_grid(show: str) -> None:
    weights = heads(12, 12, 128, 128) if show == "large" else heads(2, 4, 12, 12) * causal(12)
    if show == "deep":
        weights = heads(30, 9, 14, 14) * causal(14)
    if show == "unknown":
        weights[1, 2] = torch.nan
    grid(weights, selected=told((0, 0)), key="grid", title="demo", on_pick=choose)


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
    labels = numbered(weights.shape[-1])
    small = replace(thumbnails_of_weights(weights), exact=weights, allowed=allowed)
    layer, head = told((0, 0))
    whose = EveryHead("demo", ("demo, layer ", ", head "))
    grid(small, selected=(layer, head), key="grid", title="demo", on_pick=choose, every=whose)
    text, of = f"demo, layer {layer}, head {head}", "another" if show == "another" else "demo"
    title(text, key="title", head=(of, layer, head))
    matrix(
        weights[layer, head],
        labels,
        labels,
        key="matrix",
        allowed=allowed[layer],
        title=text,
        top=1.0,
        head=(of, layer, head),
    )


def demo_inspect(show: str) -> None:
    if show == "words":
        inspect(
            attention(n) * causal(n), WORDS, WORDS, key="inspect", title="demo", allowed=causal(n)
        )
    elif show == "cross":
        inspect(heads(len(FRENCH), n), FRENCH, WORDS, key="inspect", title="demo", same=False)
    elif show == "emoji":
        inspect(attention(len(EMOJI)), EMOJI, EMOJI, key="inspect", title="demo")
    elif show == "held":
        held = told(((0, 4),))[0]
        inspect(attention(n), WORDS, WORDS, key="inspect", title="demo", pinned=held, on_pin=choose)
    elif show == "empty":
        values = attention(n)
        values[2] = 0
        values[3, 4] = torch.nan
        inspect(values, WORDS, WORDS, key="inspect", title="demo")


def demo_lines(show: str) -> None:
    if show == "words":
        lines(heads(4, n, n), WORDS, WORDS, key="lines", title="demo")
    elif show == "cross":
        head = st.slider("Head", 0, 3, 1, key="head")
        lines(heads(4, 10, n), FRENCH, WORDS, key="lines", title="demo", drawn=[head])
    elif show == "held":
        drawn, held = told(((1, 2), (0, 4)))
        lines(
            heads(4, n, n),
            WORDS,
            WORDS,
            key="lines",
            title="demo",
            drawn=drawn,
            pinned=held,
            on_choice=choose,
        )
    elif show == "strange":
        lines(heads(4, len(STRANGE), len(STRANGE)), STRANGE, STRANGE, key="lines", title="demo")
    else:
        labels = numbered(int(show))
        lines(heads(12, len(labels), len(labels)), labels, labels, key="lines", title="demo")


def demo_matrix(show: str) -> None:
    how: dict[str, Any] = {}
    labels: Sequence[Label] = WORDS
    values = attention(n)
    if show == "words":
        values = attention(n, st.slider("Seed", 0, 9, 0, key="seed"))
        how = {"allowed": causal(n)}
    elif show == "strange":
        labels, values = STRANGE, attention(len(STRANGE))
    elif show == "emoji":
        labels, values = EMOJI, attention(len(EMOJI))
    elif show == "difference":
        values = torch.randn(n, n, generator=torch.Generator().manual_seed(1))
        how = {"scale": "diverging", "unit": "difference"}
    elif show == "exact":
        labels, values = list("ab"), torch.tensor([[3000.0, 0.3], [0.05, 3e-8]])
        how = {"scale": "diverging", "exact": True, "places": [[3, 4], [12, 14]]}
    elif show == "ties":
        labels, values = list("abc"), torch.tensor(TIES).reshape(3, 3)
    elif show == "nearly":
        labels, values = ["a"], torch.tensor([[0.534990]])
    elif show == "cut":
        cut = torch.zeros(n, n, dtype=torch.bool)
        cut[0, 1] = True
        how = {"hidden": [2], "cut": cut, "on_hide": choose}
    elif show == "held":
        if st.button("Hold the first"):
            choose((0, 0))
        how = {"pinned": told(((3, 1),))[0], "on_pin": choose}
    elif show == "unknown":
        values[5] = torch.nan
        how = {"allowed": causal(n)}
    elif show.isdecimal():
        labels, values = numbered(int(show)), attention(int(show))
        how = {"allowed": causal(int(show))}
    matrix(values, labels, labels, key="matrix", **how)


def demo_scaled(show: str) -> None:
    values = torch.tensor([[0.8, 0.0], [0.1, 0.05]])
    ways: list[dict[str, Any]] = [{}, {"scaling": "row"}, {"scaling": "column"}, {"log": True}]
    for at, how in enumerate(ways):
        matrix(values, ["a", "b"], ["c", "d"], key=f"matrix{at}", height=190, **how)


def demo_beside(show: str) -> None:
    """Pictures of different sizes and labels, in places of one size."""
    labels = [numbered(15), numbered(14), ["a", "antidisestablishmentarianism", "b"]]
    beside = [Beside(each, each) for each in labels] if show == "beside" else []
    for at, (column, names) in enumerate(zip(st.columns(3), labels, strict=True)):
        with column:
            values = attention(len(names))
            matrix(values, names, names, key=f"matrix{at}", height=370, beside=beside)


def demo_pass_map(show: str) -> None:
    """The picture of a pass with block 0 of the last stack opened, until that is closed."""
    opened, forward = passed(show)
    picture = pass_picture.picture_of(opened, forward)
    names = [stack.name for stack in picture.stacks]
    last, answer = len(names) - 1, len(picture.flow.starts) - 1
    what, value = told(("chosen", [answer, -1, -1, 0.005, last, 0, *[-1] * 5]))
    if what == "chosen":
        state.held = value
    pass_map(
        encode(picture, "pass_map", "demo", answer),
        key="pass_map",
        title="demo",
        choice=state.held,
        height=760,
        on_chosen=partial(choose, "chosen"),
        on_go=partial(choose, "go"),
        appends=[],
        on_append=partial(choose, "append"),
        figures=mounting.no_figures,
    )
    stack, layer = state.held[4:6]
    if stack >= 0:
        inside = block_inside(forward, names[stack], layer)
        heads = forward.config.n_heads
        message = encode_block(inside, picture.of, names, heads, doors.door_of_stage)
        block_panel("pass_map", message, picture.of, (stack, layer), 1)


MAPS: dict[str, Callable[[], PassMap]] = {
    **{kind: partial(flows.of_kind, kind) for kind in flows.KINDS},
    "words": lambda: flows.picture(flows.made_up(2, 6), {"decoder": WORDS[:6]}),
    "late": lambda: flows.picture(flows.made_up(2, 3), {"decoder": WORDS[:3]}, known=[2]),
    "deep": lambda: flows.picture(flows.made_up(30, 12), {"decoder": WORDS}),
    "strange": lambda: flows.picture(flows.made_up(2, len(STRANGE)), {"decoder": STRANGE}),
    "emoji": lambda: flows.picture(flows.made_up(2, len(EMOJI)), {"decoder": EMOJI}),
    "unknown": lambda: flows.picture(
        flows.without_numbers(flows.made_up(2, 3)), {"decoder": WORDS[:3]}
    ),
    "one": lambda: flows.picture(flows.made_up(1, 1), {"decoder": WORDS[:1]}),
    "nothing": lambda: flows.picture(flows.nothing_across(3), {"decoder": WORDS[:3]}),
    "cut": lambda: flows.picture(flows.made_up(10, 90), {"decoder": numbered(90)}),
}


def demo_flow(show: str) -> None:
    shown = MAPS[show.partition(" held")[0]]()
    asked = len(shown.flow.starts) - 1
    choice = [asked, -1, -1, 0.005, -1, -1, *[-1] * 5]
    if show.endswith("held"):
        choice = [1, 0, 0, 0.05, -1, -1, 0, 1, 2, 1, 2]
    appends = [True, True, False] if show == "words" else []
    pass_map(
        encode(shown, "pass_map", "demo", asked, appends, most=24_000),
        key="pass_map",
        title="demo",
        choice=choice,
        height=460,
        on_chosen=partial(choose, "chosen"),
        on_go=partial(choose, "go"),
        appends=appends,
        on_append=partial(choose, "append"),
        figures=mounting.no_figures,
    )
    if show == "late":
        late = [flows.answer(at) for at in range(3)]
        late[0] = MapAnswer("a0", [("a0", torch.nan)])
        other_answers("pass_map", late, shown.of)
    if shown.has_lens:
        stack = shown.stacks[-1]
        layers = len(shown.flow.stacks[stack.name])
        for layer in reversed(range(layers)):
            row = [(f"w{layer}-{at}", (layer + 1) / 100) for at in range(len(stack.tokens))]
            lens_rows("pass_map", layer, [row], shown.of)


def demo_miniature(show: str) -> None:
    """The pass in small: of a model of a kind, or a made-up one."""
    if st.button("Elsewhere"):
        choose("elsewhere", None)
    flow = MAPS[show]().flow
    stack = list(flow.stacks)[-1]
    miniature(
        flow,
        route(flow, flow.starts[-1]),
        key="miniature",
        title="demo",
        parts=[("tokens", "Tokens"), ("attention", "Attention"), ("answer", "Answer")],
        lit=["answer"] if told(("", None))[0] == "elsewhere" else ["attention"],
        layer=(stack, len(flow.stacks[stack]) - 1),
        height=190,
        on_go=choose,
    )


def demo_circuit_map(show: str) -> None:
    """A circuit; what is chosen comes back."""
    shown = {
        "long": lambda: invented(numbered(90)),
        "strange": lambda: invented(STRANGE),
        "deep": lambda: invented(layers=30),
        "class": lambda: replace(invented(), place=None),
    }.get(show, invented)()
    if st.button("Another head"):
        choose(Held(len(shown.edges), (5, 0)))
    circuit_map(
        shown,
        key="circuit_map",
        title="demo",
        held=told((Held(len(shown.edges)),))[0],
        on_held=choose,
    )


def demo_ranked(show: str) -> None:
    weights = heads(4, 6, 16, 16) if show == "many" else heads(2, 4, 12, 12) * causal(12)
    places = [(layer, head) for layer in range(len(weights)) for head in range(weights.shape[1])]
    items = [
        Item(layer, head, f"{at} of {len(places)}", f"{0.9 - at / 100:.3f}", weights[layer, head])
        for at, (layer, head) in enumerate(places, 1)
    ]
    ranked(items, key="ranked", title="demo", selected=told((0, 0)), on_pick=choose)


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
    stage_list(
        sections,
        key="stage_list",
        at=told((0,))[0],
        on_move=choose,
        title="demo",
        height=400,
        note="a note",
    )
    st.text_input("Words", key="words")
    if show == "beside":
        matrix(attention(n), WORDS, WORDS, key="matrix")


def demo_player(show: str) -> None:
    """Steps that end, and steps that grow up to ten; the figure is the step that is shown."""
    count = state.get("count", 5)

    def move(to: int) -> None:
        state.count = max(count, to + 1)
        choose(to)

    grows = show == "grows" and count < 10
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
    if show == "long":
        nodes = [Node(at - 1, at, 0, f"n{at}", "1.00", "{token}") for at in range(40)]
    tree(
        nodes,
        key="tree",
        title="demo",
        idle="Point at a node.",
        rows=3,
        marked=range(len(nodes)) if show == "long" else [0, 1],
        follows=show == "long",
        on_pick=choose,
    )


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


DEMOS = (
    demo_board,
    demo_cells,
    demo_chips,
    demo_film,
    demo_grid,
    demo_every,
    demo_inspect,
    demo_lines,
    demo_matrix,
    demo_scaled,
    demo_beside,
    demo_pass_map,
    demo_flow,
    demo_circuit_map,
    demo_miniature,
    demo_ranked,
    demo_stage_list,
    demo_player,
    demo_tree,
)
st.set_page_config(layout="wide")
st.navigation([st.Page(index, default=True), *map(page_of, DEMOS)]).run()
state.runs = state.get("runs", 0) + 1
st.text(f"told {state.get('told')}, run {state.runs}")

"""The code panel of every view: its lines run as pasted and give the page's numbers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from explorer.analysis.circuits.top_lines import best_lines
from explorer.analysis.forward_pass.stages import stages_of
from explorer.analysis.head_metrics import METRICS
from explorer.analysis.wiring import edge_grid
from explorer.app.session import SESSION_KEY
from explorer.catalog import available_models, opened_model
from explorer.catalog.shipped import SHIPPED
from explorer.inference import continuation
from explorer.interventions.address_text import to_address
from explorer.interventions.edits import (
    AblateHead,
    AblateMlp,
    CutEdge,
    EditHistory,
    HideKey,
    MaskCell,
    ReplaceToken,
)
from explorer.runs.run import create
from explorer.runs.worker import advance
from explorer.system.data_folders import runs_root
from explorer.text import word_tokenizer
from explorer.text.number_format import signed, spread, three
from explorer.text.token import DECODER
from explorer.views.input.scheme import ODD_WIDTH
from explorer.views.training.data_view import RequestedRun
from models import trace
from tests import apps
from tests.panels.pasting import Panel, as_array, panel
from tests.tiny import WORDS, save_forced_to_begin, save_model
from tests.views.drawing import sent

ALL = ("translation", "letters", "reviews", "reverse", "bert", "gpt2", "t5")
SOME, OTHERS = ("letters", "t5"), ("translation", "bert")
PUBLISHED = ("bert", "gpt2", "t5")
WRITING = ("translation", "letters", "gpt2", "t5")
FEW = ("translation", "bert")
Check = Callable[[Panel], None]


def drawn(**views: str) -> Check:
    """Each of these views shows what the lines have made under the name beside it."""

    def check(page: Panel) -> None:
        for key, name in views.items():
            page.shows(key, name)

    return check


masks = drawn(mask_both="mask", scores="scores", weights="weights")
compared = drawn(map_first="first", map_second="second", map_difference="weights")


def start(page: Panel) -> None:
    page.shows("start_head", "weights")
    assert any("of the answer" in line for line in page.printed)


def tokens(page: Panel) -> None:
    assert page.made["ids"] == page.column("token ID")


def space(page: Panel) -> None:
    """The places of the tokens at every step, and the cosines of the tables."""
    spec = json.loads(page.at.get("plotly_chart")[0].proto.spec)
    frames = [each["data"][1] for each in spec["frames"] if each["name"].isdecimal()]
    drawn = np.array([[frame[axis] for axis in "xyz"] for frame in frames]).transpose(0, 2, 1)
    np.testing.assert_allclose(drawn, page.made["places"], atol=1e-4)
    tables = [each.value for each in page.at.dataframe if "cosine similarity" in each.value]
    made = page.made["nearest"]
    assert len(tables) == len(made)
    for table, found in zip(tables, made, strict=True):
        cosines = [three(cosine) for _, cosine in found.pairs(0)]
        assert list(table["cosine similarity"]) == cosines


def pair(page: Panel) -> None:
    made = page.made
    page.says(made["products"].sum(), made["weights"].max())
    rows = dict(zip(page.at.table[1].value["step"], page.at.table[1].value["value"], strict=True))
    number = int(str(page.at.selectbox(key="number").value))
    assert rows["all keys: output of this head"] == three(float(made["written"][number]))
    mine = three(float(made["for_this_key"][number]))
    assert rows["this key: weight × value × W_O"] == mine


def lens(page: Panel) -> None:
    best = page.made["logits"].double().softmax(-1).max(-1).values
    column = page.column("1.")
    assert [cell.split()[-1] for cell in column] == [three(float(each)) for each in best]
    found = page.made["found"]
    drawn = torch.cat([*found.heads.values(), found.feed_forward[:, None]], 1)
    picture = torch.from_numpy(page.picture("made_of")).float()
    torch.testing.assert_close(picture, drawn, rtol=2e-4, atol=2e-4 * float(drawn.abs().max()))
    sums = dict(zip(page.column("what"), page.column("logits"), strict=True))
    assert sums["logit"] == three(found.total)
    assert sums["biases"] == three(found.constant)
    page.says(found.logit)


def finder(page: Panel) -> None:
    layer = page.at.session_state["layer"]
    seen = page.picture("heads_table")[layer]
    title = page.at.selectbox(key="metric").value
    name = next(each.name for each in METRICS.values() if each.title == title)
    torch.testing.assert_close(
        torch.from_numpy(seen), page.made["found"][name], rtol=2e-4, atol=1e-4, equal_nan=True
    )


def similarity(page: Panel) -> None:
    made, heads = page.made["similarity"], page.made["heads"]
    row = page.picture("similarity")[page.made["layer"] * heads + page.made["head"]]
    torch.testing.assert_close(torch.from_numpy(row).float(), made, rtol=2e-4, atol=2e-4)


def flow(page: Panel) -> None:
    seen = torch.from_numpy(page.picture("flow"))
    both = torch.stack([page.made["flow"].double(), page.made["share"].double()])
    torch.testing.assert_close(seen[:2], both, rtol=2e-4, atol=1.01e-4)


def training(page: Panel) -> None:
    """The losses of a run that a worker made, as the form asked for it."""
    run = create(runs_root(), page.at.session_state[SESSION_KEY].state(RequestedRun).spec)
    for _ in advance(run.folder):
        pass
    found = [loss for _, loss in run.metrics().update().losses()]
    assert len(found) == len(page.made["losses"]) == 4
    assert found == pytest.approx(page.made["losses"], rel=1e-4)


def weights(page: Panel) -> None:
    weight = page.made["weight"]
    page.says(weight.mean(), page.made["rms"], weight.norm(), weight.min(), weight.max())


def norms(page: Panel) -> None:
    rms = dict(zip(page.column("tensor"), page.column("rms"), strict=True))
    assert rms == pytest.approx(page.made["rms"], rel=1e-5)


def spectrum(page: Panel) -> None:
    values = page.made["values"]
    page.says(values[0], values[-1], page.made["edge"])


def statistics(page: Panel) -> None:
    state = page.at.session_state
    page.says(page.made["found"]["entropy"][state["head"]])


def ledger(page: Panel) -> None:
    assert f"**{page.made['node'].count:,} parameters**" in page.words()


def doctor(page: Panel) -> None:
    for finding in page.made["findings"]:
        assert finding.sentence in page.words()


def before_after(page: Panel) -> None:
    """The maps, the probabilities that the bars show, every number of the change, the answers."""
    drawn(map_before="first", map_after="second", map_difference="weights")(page)
    made = page.made
    was, now = float(made["was"]), float(made["now"])
    printed = {
        "KL divergence": f"{three(float(made['divergence']))} nats",
        "tracked logit before": three(was),
        "tracked logit after": three(now),
        "change in the tracked logit": signed(now - was),
    }
    if text := made.get("text"):
        most = int(text.kl.argmax())
        printed["mean KL over positions"] = f"{three(float(text.kl.mean()))} nats"
        printed[f"largest KL, at position {most}"] = f"{three(float(text.kl[most]))} nats"
        for when, loss in zip(("before", "after"), text.loss or (), strict=False):
            printed[f"loss per token {when}"] = f"{three(loss)} nats"
        if text.loss:
            change = text.loss[1] - text.loss[0]
            printed["change in loss per token"] = f"{signed(change)} nats"
    assert dict(zip(page.column("what"), page.column("value"), strict=True)) == printed
    bars = json.loads(page.at.get("vega_lite_chart")[0].proto.spec)["layer"][0]["data"]["values"]
    shown = [bar["value"] for bar in bars]
    np.testing.assert_allclose(shown, made["probabilities"].flatten(), rtol=1e-5)
    for when, answer in zip(("before", "after"), made.get("answers", ()), strict=False):
        assert f"Generated {when}: {answer or 'no readable text'}" in page.words()


def pooled(page: Panel) -> None:
    """The same where the difference is over groups of tokens."""
    compared(page)
    assert page.made["first"].shape != page.made["second"].shape


def every_head(page: Panel) -> None:
    layer = page.at.session_state["layer"]
    seen = torch.from_numpy(page.picture("heads_off")[layer])
    torch.testing.assert_close(seen, page.made["found"], rtol=1e-3, atol=1e-4)


def faithful(page: Panel) -> None:
    """The curve of the strongest edges."""
    drawn = [row["KL"] for row in rows_of(page, "line")][::2]
    assert drawn == pytest.approx(page.made["found"].strongest.tolist(), abs=1e-6)


def stages(page: Panel) -> None:
    """Every matrix of a head."""
    header, planes = sent(page.at, "stages")
    names = {"scaled": "scores", "logits": "masked"}
    for each in header["panels"]:
        if each["of"] != "added":
            made = as_array(page.made[names.get(each["of"], each["of"])])
            shown = np.frombuffer(planes[each["of"]], "<f4").reshape(each["size"])
            np.testing.assert_allclose(shown, made, rtol=1e-4, atol=1e-5)


def scheme(page: Panel) -> None:
    """Every matrix of the scheme on screen, the last of two."""
    each = [each for each in ("", "other_") if f"{each}products" in apps.views(page.at)][-1]
    shown = page.made["shown"]
    page.made.update(products=shown.products, table=shown.table)
    page.shows(f"{each}products", "products")
    if shown.table is not None:
        page.shows(f"{each}positions_table", "table")


def doubled(page: Panel) -> None:
    page.says(page.made["wrong"].spread)
    assert spread(page.made["right"].spread) in page.words()


def longer(page: Panel) -> None:
    """Before and after the trained length, half of the tokens each."""
    values = page.made["found"].effective_keys
    half = len(values) // 2
    assert half == opened_model.open_model(page.at.session_state["model"]).config.max_len
    page.says(values[:half].mean(), values[half:].mean())


def choice(page: Panel) -> None:
    """What can be drawn, and which token is."""
    final = page.made["probabilities"][0]
    shown = [row[5] for row in page.board("stages") if row[5] != "0"]
    expected = [three(float(each)) for each in final[final > 0]]
    assert sorted(shown, key=float) == sorted(expected, key=float)
    rows = [row for row in page.header("stages")["rows"] if "sampled" in row["mark"]]
    assert [row["cells"][5][0] for row in rows] == [three(float(final[page.made["token"]]))]


def beams(page: Panel) -> None:
    found = page.made["found"]
    assert page.column("score") == [three(found.nodes[end].score) for end in found.ends]


def steering(page: Panel) -> None:
    """The clean text's metric at every strength, the length of the direction, and the text."""
    made = page.made
    drawn = [row["value"] for row in rows_of(page, "line") if row["which"] == "clean"]
    np.testing.assert_allclose(drawn, made["curve"].clean[0], rtol=1e-3, atol=1e-4)
    if "prompt" in made:
        assert page.printed[-1].strip() in page.words()


def rows_of(page: Panel, mark: str) -> list[dict[str, Any]]:
    """The rows of the first layer with this mark in a chart."""
    specs = [json.loads(each.proto.spec) for each in page.at.get("vega_lite_chart")]
    layers = (layer for spec in specs for layer in spec["layer"])
    return next(layer["data"]["values"] for layer in layers if layer["mark"]["type"] == mark)


def parts(page: Panel) -> None:
    """Estimate and exact value of every part: the points, the strongest, how they agree."""
    about, exact = page.made["scores"].writers, page.made["exact"]
    points = rows_of(page, "point")
    assert [each["estimate"] for each in points] == pytest.approx(about.tolist(), abs=1e-5)
    assert [each["exact"] for each in points] == pytest.approx(exact.tolist(), abs=1e-5)
    order = about.abs().argsort(descending=True)[: len(page.column("part"))]
    assert page.column("exact") == [three(float(value)) for value in exact[order]]
    assert page.column(page.at.session_state["attributed_by"]) == [
        three(float(value)) for value in about[order]
    ]
    r = torch.corrcoef(torch.stack([about, exact]).double())[0, 1]
    assert f"over all parts: {r:.3f}." in page.words()
    page.says(page.made["scores"].difference)


def circuit(page: Panel) -> None:
    """The strongest edges, circuits of every size, and the smallest that restores 90 %."""
    made = page.made
    edges = [made["scores"].edge(*place) for place in made["strongest"]]
    count = len(edges)
    assert page.column("edge")[:count] == [edge.title for edge in edges]
    assert page.column("exact")[:count] == [three(float(value)) for value in made["exact"]]
    drawn = [row["share"] for row in rows_of(page, "line") if "alone" in row["which"]][::2]
    shares = [min(1.5, max(-0.5, each.circuit)) for each in made["points"]]
    assert drawn == pytest.approx(shares, abs=1e-4)
    assert f"About {page.printed[-1]} of {len(made['scores'].order):,} edges" in page.words()


def traced(page: Panel) -> None:
    """The grid, from where the texts differ."""
    seen = page.picture("traced_values")
    name = "change" if page.at.session_state["patch_number"] == "Metric" else "share"
    made = page.made[name].numpy()[-len(seen) :]
    np.testing.assert_allclose(seen, made, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(made).max()))


def paths(page: Panel) -> None:
    """Every head at the other end of an edge."""
    made, seen = page.made, page.picture("path_ends")
    wiring, is_sender = made["wiring"], made["is_sender"]
    ends = [wiring.rows[row] if is_sender else wiring.columns[at] for row, at in made["edges"]]
    lost = edge_grid(wiring, ends, made["lost"].tolist()).numpy()
    np.testing.assert_allclose(seen, lost, rtol=2e-3, atol=2e-3 * np.nanmax(np.abs(lost)))


def forced(page: Panel) -> None:
    chances = page.made["found"].probabilities
    assert torch.isfinite(chances).all()
    assert page.board("forcing")[3] == [three(float(each)) for each in chances]


SCHEME, ORDER, LONGER = "input/positions", "Permutation", "Length extrapolation"
SCHEMES = ("Sinusoidal", "Rotary", "Relative", "ALiBi")
DRAWN = {"temperature": "1.5", "top_k": "7", "top_p": "0.9", "seed": "4"}
OTHER_MODEL = {"with": "Another model", "text": "the dog"}
PAIR = {"text": "the cat was good", "pair": "the dog was bad"}
CUT_AND_MASKED = "1.2~h.e.0.1.m~m.e.0.n.1"
D = "decoder.self_attn"
OF_MOST_KINDS = to_address(
    EditHistory(
        (
            AblateHead(D, 0, 1),
            AblateMlp(D, 0, "mean"),
            MaskCell(D, None, 2, 1, False),
            HideKey(D, 1, 0),
            CutEdge(D, 1, 1, 2, 0),
            ReplaceToken(D, 1, 200),
        ),
        6,
    )
)
EDITED = {"with": "Your interventions"}
ADJUSTED: tuple[dict[str, str], ...] = (
    {},
    {"heads": "Mean", "weighting": "Value norm"},
    {"heads": "Max of all layers", "hide_first": "true"},
    {"mass": "50", "words": "true", "colours": "Row", "log": "true"},
)
STEERED_BY_HEAD = {"steer_by": "Head output", "steer_strength": "-3.5"}
STEERED: dict[str, tuple[str, str]] = {
    "letters": ("the cat and the hat", "the hat and the cat"),
    "reviews": ("the cat", "the dog"),
    "gpt2": ("5 17 3", "5 9 3"),
    "bert": ("the cat [MASK] good", "a dog [MASK] good"),
}
BOTH = ("text", "corrupted")
READERS = ("letters", "reviews", "bert")
"""Those that read words, not token IDs."""
TRACED: tuple[dict[str, str], ...] = (
    {},
    {"patched_value": "Attention output", "patch_way": "Noising", "patch_number": "Metric"},
)


def card(page: Panel) -> None:
    """The scores, the direct contributions and the strongest heads it composes with."""
    made = page.made
    page.says(*made["scores"].values(), made["effect"].to_answer, made["effect"].to_against)
    if "copied" in made:
        page.says(made["copied"].score, made["copied"].own_in_top)
    layer = page.at.session_state["layer"]
    if layer:
        composed = made["composed"][1].mT
        picture = torch.from_numpy(page.picture("composition")).double()
        torch.testing.assert_close(picture, composed, rtol=2e-4, atol=2e-4)
    page.says(*(source.weight for source in made["sources"]))


def evidence(page: Panel) -> None:
    """The numbers and the lines of the list."""
    found = page.made
    best = best_lines(found["found"], found["by"], found["layer"], found["head"], 10)
    name = "norm" if "norm" in page.at.dataframe[-1].value else "weight"
    assert page.column(name) == [three(each.value) for each in best]
    assert page.column("line") == [f"{each.line + 1:,}" for each in best]


PATHS: tuple[dict[str, str], ...] = (
    {"layer": "0", "head": "1"},
    {"layer": "1", "head": "0", "path_end": "Into this head", "path_reads": "Values"},
)


def each_once(
    ways: tuple[dict[str, str], ...], names: tuple[str, ...]
) -> Iterator[tuple[dict[str, str], str]]:
    """Pairs in which every way and every name occurs."""
    for at in range(max(len(ways), len(names))):
        yield ways[at % len(ways)], names[at % len(names)]


VIEWS: list[tuple[str, dict[str, str], Check, tuple[str, ...]]] = [
    ("overview/overview", {}, start, ALL),
    ("input/tokens", {}, tokens, ALL),
    ("input/embedding_space", {}, space, (*FEW, "reviews", "gpt2")),
    ("input/embedding_space", {"space_of": "Residual stream", "near": "0"}, space, FEW),
    ("input/embedding_space", {"space_of": "Unembedding"}, space, ("letters", "bert", "t5")),
    ("input/embedding_space", {"of_stack": "Encoder"}, space, ("translation", "t5")),
    ("attention/query_key", {}, pair, (*SOME, "reverse", "bert")),
    ("forward_pass/logit_lens", {}, lens, (*OTHERS, "reviews", "gpt2")),
    ("attention/masks", {"example": "Your sentence"}, masks, SOME),
    ("attention/masks", {"example": "A padded batch"}, masks, OTHERS),
    ("attention/masks", {"example": "I am a student"}, drawn(mask_both="mask"), ("letters",)),
    ("attention/heads", {"side": "Finder"}, finder, OTHERS),
    ("attention/heads", {"side": "Similarity"}, similarity, SOME),
    ("attention/heads", {"side": "Rollout", "part": "Decoder"}, drawn(rollout="shares"), OTHERS),
    ("attention/heads", {"side": "Flow", "part": "Decoder"}, flow, SOME),
    ("attention/head_steps", {"part": "Encoder", "text": "the cat"}, stages, (*FEW, "t5")),
    ("attention/head_steps", {}, stages, ("letters", "reviews", "reverse", "gpt2")),
    ("generation/generation", DRAWN, choice, WRITING),
    ("generation/generation", {**DRAWN, "branches": "0d9.1f7"}, choice, WRITING),
    ("generation/generation", {"way": "Beam search", "beams": "3", "length": "4"}, beams, WRITING),
    ("generation/generation", {"way": "Teacher forcing"}, forced, WRITING),
    *[(SCHEME, {"scheme": name}, scheme, ("letters",)) for name in SCHEMES],
    (SCHEME, {}, scheme, ("bert", "t5")),
    (SCHEME, {"other_scheme": "Sinusoidal"}, scheme, ("bert", "t5")),
    (SCHEME, {"scheme": "Rotary", "other_scheme": "ALiBi"}, scheme, ("letters",)),
    (SCHEME, {"scheme": "None", "other_scheme": "Rotary"}, scheme, ("letters",)),
    (SCHEME, {"similar_by": "Cosine similarity"}, scheme, ("letters", "bert")),
    (SCHEME, {"table_width": ODD_WIDTH}, scheme, ("letters",)),
    (SCHEME, {"lab": "Doubled exponent"}, doubled, ("letters",)),
    (
        SCHEME,
        {"lab": ORDER, "order_of": "Custom order"},
        drawn(order_map_1="weights"),
        ("letters",),
    ),
    (
        SCHEME,
        {"lab": ORDER, "order_of": "Custom order", "scheme": "None"},
        drawn(order_map_1="weights"),
        ("reviews",),
    ),
    (SCHEME, {"lab": LONGER}, longer, ("letters", "translation", "reviews")),
    (SCHEME, {"lab": LONGER, "scheme": "Rotary", **PAIR}, longer, ("bert",)),
    ("training/training", {"task": "reverse"}, training, ("letters",)),
    ("models/checkpoints", {"show": "Parameters"}, ledger, FEW),
    ("models/checkpoints", {"ledger": "paper"}, ledger, ("letters",)),
    ("models/checkpoints", {"show": "Weights"}, weights, FEW),
    ("models/checkpoints", {"show": "Norms"}, norms, FEW),
    ("models/checkpoints", {"show": "Singular values"}, spectrum, FEW),
    ("models/checkpoints", {"show": "Heads"}, statistics, SOME),
    ("models/checkpoints", {"show": "Diagnostics"}, doctor, FEW),
    *[
        ("attention/attention", {**look, "head": "1"}, drawn(attention_head="weights"), models)
        for look, models in zip(ADJUSTED, (SOME, OTHERS) * 2, strict=True)
    ],
    ("experiments/interventions", {"edits": "1.1~h.d.0.1.z"}, before_after, WRITING),
    ("experiments/interventions", {"edits": CUT_AND_MASKED}, before_after, ("bert", "reviews")),
    ("experiments/interventions", {"edits": OF_MOST_KINDS}, before_after, ("letters",)),
    ("experiments/compare", {**EDITED, "edits": OF_MOST_KINDS}, compared, ("letters",)),
    ("attention/attention", PAIR, drawn(attention_head="weights"), ("bert",)),
    *(
        (
            "experiments/circuits",
            {"circuit_view": view, **way, **dict(zip(BOTH, STEERED[name], strict=True))},
            check,
            (name,),
        )
        for view, check, ways, names in (
            ("Heads", parts, ({}, {"attributed_by": "EAP"}), ("letters",)),
            ("Circuit", circuit, ({"patched_edges": "7"},), ("letters",)),
            ("Steering", steering, ({}, STEERED_BY_HEAD), (*STEERED,)),
            ("Causal tracing", traced, TRACED, (*STEERED,)),
            ("Head card", card, ({}, {"layer": "1", "head": "1"}), ("letters", "gpt2")),
            ("Head card", card, ({},), ("reviews", "bert")),
            ("Text as evidence", evidence, ({}, {"excited_by": "Largest weight"}), READERS),
            ("Path patching", paths, PATHS, ("letters", "gpt2")),  # norms leave the others no edges
        )
        for way, name in each_once(ways, names)
    ),
    ("experiments/compare", {"with": "Another head"}, compared, OTHERS),
    ("experiments/compare", {"with": "Another sentence"}, compared, FEW),
    ("experiments/compare", {**OTHER_MODEL, "other_model": "reviews"}, pooled, ("letters",)),
    ("experiments/compare", {**OTHER_MODEL, "other_model": "letters"}, pooled, ("reviews",)),
    (
        "experiments/compare",
        {**OTHER_MODEL, "part": "Encoder", "other_model": "letters"},
        pooled,
        ("translation",),
    ),
    ("experiments/interventions", {"look": "Every head"}, every_head, SOME),
    ("experiments/interventions", {"look": "Faithfulness"}, faithful, OTHERS),
]
STATE = {"training/training": {"reverse_steps": 4, "reverse_batch_size": 2}}


@pytest.fixture
def folders(
    small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """Every model is offered: in which folder each lies."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    return {name: published if name in PUBLISHED else small_models for name in ALL}


@pytest.mark.parametrize(
    ("path", "address", "check", "models"), VIEWS, ids=[path.split("/")[1] for path, *_ in VIEWS]
)
def test_the_lines_of_a_view_make_its_numbers(
    path: str,
    address: dict[str, str],
    check: Check,
    models: tuple[str, ...],
    folders: dict[str, Path],
    subtests: pytest.Subtests,
) -> None:
    for model in models:
        with subtests.test(model=model):
            check(panel(path, folders[model], STATE.get(path), model=model, **address))


def test_the_lines_of_two_schemes_open_the_model_that_has_the_learned_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(SHIPPED))
    for first, second in [("Sinusoidal", "Learned"), ("Learned", "Sinusoidal")]:
        asked = {"model": "shakespeare", "scheme": first, "other_scheme": second}
        page = panel(SCHEME, SHIPPED, **asked)
        scheme(page)
        assert page.made["shown"].table is not None


def test_the_lines_of_every_kind_of_stage_make_what_is_drawn(
    folders: dict[str, Path], subtests: pytest.Subtests
) -> None:
    """Of each kind the last stage of the first model that has it."""
    configs, seen = (
        {entry.name: entry.config for entry in available_models.list_models()},
        set[str](),
    )
    for model in ALL:
        config = configs[model]
        assert config is not None
        last = {stage.kind: stage.name for stage in stages_of(config)}
        new, seen = {kind: last[kind] for kind in last if kind not in seen}, seen | set(last)
        for kind, name in new.items():
            with subtests.test(model=model, kind=kind):
                page = panel("forward_pass/forward_pass", folders[model], model=model, stage=name)
                values = as_array(page.made["values"])
                if kind == "tokens":
                    shown = page.column("token ID")
                    assert [f"{value:,.0f}" for value in values] == shown
                    continue
                rows, columns = page.header("stage_values")["places"]
                values = values.reshape(-1, values.shape[-1])
                few = values if len(values) == len(rows) else values[rows]
                page.made["drawn"] = few[:, columns]
                page.shows("stage_values", "drawn")


def test_the_lines_of_too_many_shares_make_those_of_the_chosen_token(
    small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.analysis.forward_pass.pass_values.MOST_LOGITS", 10)
    for address in [{"decoder_token": "1"}, {}]:
        page = panel(
            "forward_pass/forward_pass",
            small_models,
            model="letters",
            stage="probabilities",
            **address,
        )
        _, columns = page.header("stage_values")["places"]
        assert len(page.made["values"]) == 1
        page.made["values"] = page.made["values"][:, columns]
        page.shows("stage_values", "values")


def test_the_lines_begin_with_the_token_that_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_forced_to_begin(tmp_path / "folders", "begins")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "folders"))
    page = panel(
        "generation/generation", tmp_path / "folders", model="begins", way="Teacher forcing"
    )
    assert page.made["found"].probabilities[0] == 1
    forced(page)
    label = opened_model.open_model("begins").tokenizer.label
    assert page.board("forcing")[2] == [label(int(each)) for each in page.made["found"].predicted]


def test_what_fills_up_a_prompt_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folders"
    save_model(folder, "filled", None, "the cat dog", tie_embeddings=False)
    cat = word_tokenizer(WORDS, DECODER).encode("the cat dog")[-2].id
    config = folder / "filled" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_id": cat}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    opened = opened_model.open_model("filled")
    begun = [token.id for token in continuation.prompt_of(opened, "the cat dog").tokens]
    page = panel("generation/generation", folder, model="filled", branches=f"0d9.1f{cat}")
    path = page.made["path"][: page.made["step"]]
    ids = torch.tensor([[*begun, *path]])
    keep = ids != cat
    assert not keep[:, : len(begun)].all()
    keep[:, len(begun) :] = True
    logits = trace(opened.model, ids, keep=keep).output[0, -1]
    assert cat in path
    assert (page.made["logits"][0] - logits).abs().nan_to_num(posinf=0).max() < 1e-5

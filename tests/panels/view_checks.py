"""What each view must show of the numbers that its pasted lines made."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from explorer.analysis.circuits.top_lines import best_lines
from explorer.analysis.head_metrics import METRICS
from explorer.analysis.score_sources import strongest_sources
from explorer.analysis.wiring import edge_grid
from explorer.app.session import SESSION_KEY
from explorer.catalog import opened_model
from explorer.runs.run import create
from explorer.runs.worker import advance
from explorer.system.data_folders import runs_root
from explorer.text.number_format import signed, spread, three
from explorer.views.generation.token_by_token import LEAST_SHARE
from explorer.views.input.token_vectors import STEPS_DRAWN
from explorer.views.training.data_view import RequestedRun
from tests import apps
from tests.panels.pasting import Panel, as_array
from tests.views.drawing import sent

Check = Callable[[Panel], None]


def drawn(**views: str) -> Check:
    """Each of these views shows what the lines have made under the name beside it."""

    def check(page: Panel) -> None:
        for key, name in views.items():
            page.shows(key, page.made[name])

    return check


compared = drawn(map_first="first_map", map_second="second_map", map_difference="weights")


def start(page: Panel) -> None:
    page.shows("start_head", page.made["weights"])
    assert any("of the answer" in line for line in page.printed)


def tokens(page: Panel) -> None:
    assert page.made["ids"] == page.column("token ID")


def space(page: Panel) -> None:
    """The places of the tokens at every step, and the cosines of the tables."""
    made, charts = page.made["places"], page.at.get("plotly_chart")
    if charts:
        frames = json.loads(charts[0].proto.spec)["frames"]
        dots = [each["data"][1] for each in frames if each["name"].isdecimal()]
        drawn = np.array([[dot[axis] for axis in "xyz"] for dot in dots]).transpose(0, 2, 1)
    else:
        made = made[STEPS_DRAWN[page.at.session_state["space_of"]], :, :2]
        points = [[row["x"], row["y"]] for row in rows_of(page, "line")]
        drawn = np.array(points).reshape(made.shape[1], -1, 2).transpose(1, 0, 2)
    np.testing.assert_allclose(drawn, made, atol=1e-4)
    tables = [each.value for each in page.at.dataframe if "cosine similarity" in each.value]
    made = page.made["nearest"]
    assert len(tables) == len(made)
    for table, found in zip(tables, made, strict=True):
        assert list(table["cosine similarity"]) == [three(cosine) for _, cosine in found.pairs(0)]


def why(page: Panel) -> None:
    sources = page.made["sources"]
    page.says(sources.contrast)
    for one in strongest_sources(sources.queries, 2):
        assert f"s it by {three(abs(one.value))}" in apps.said(page.at)


def pair(page: Panel) -> None:
    made = page.made
    page.says(made["weights"].max())
    if page.at.session_state["pair_view"] == "Products":
        page.says(made["products"].sum())
        return
    rows = dict(zip(page.at.table[0].value["step"], page.at.table[0].value["value"], strict=True))
    number = int(str(page.at.selectbox(key="number").value))
    assert rows["all keys: output of this head"] == three(float(made["output"][number]))
    assert rows["this key: weight × value × W_O"] == three(float(made["for_this_key"][number]))


def lens(page: Panel) -> None:
    best = page.made["logits"].double().softmax(-1).max(-1).values
    assert [cell.split()[-1] for cell in page.column("1.")] == [three(float(each)) for each in best]
    terms = page.made["terms"]
    drawn = torch.cat([*terms.heads.values(), terms.feed_forward[:, None]], 1)
    page.shows("made_of", drawn, within=2e-4)
    sums = dict(zip(page.column("what"), page.column("logits"), strict=True))
    assert sums["logit"] == three(terms.total)
    assert sums["biases"] == three(terms.constant)
    page.says(terms.logit)


def metric(page: Panel, key: str) -> str:
    """The name of the metric that this list has chosen."""
    title = page.at.selectbox(key=key).value
    return next(each.name for each in METRICS.values() if each.title == title)


def finder(page: Panel) -> None:
    score = page.made["scores"][metric(page, "metric")]
    page.shows("heads_table", score, at=page.at.session_state["layer"])


def heads_map(page: Panel) -> None:
    layer, score = page.at.session_state["layer"], page.made["scores"][metric(page, "up")]
    seen = [row["y"] for row in first_rows(page) if row["layer"] == layer]
    assert seen == pytest.approx(score.tolist(), rel=1e-7)


def deciles(page: Panel) -> None:
    shares = page.made["deciles"].share[page.made["layer"], page.made["head"]]
    assert [row["value"] for row in first_rows(page)] == pytest.approx(shares.tolist(), rel=1e-5)


def sinks(page: Panel) -> None:
    assert page.picture("sinks").tolist() == page.made["sinks"].weight.float().tolist()
    assert page.made["name"] == "zeroed"


def similarity(page: Panel) -> None:
    row = page.made["layer"] * page.made["heads"] + page.made["head"]
    page.shows("similarity", page.made["similarity"], at=row)


def flow(page: Panel) -> None:
    page.shows("flow", torch.stack([page.made["flow"], page.made["share"]]), at=slice(2))


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
    page.says(page.made["scores"]["entropy"][page.at.session_state["head"]])


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
        "KL divergence": f"{three(float(made['change']))} nats",
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
    bars = [bar["value"] for bar in first_rows(page)]
    np.testing.assert_allclose(bars, made["scores"].flatten(), rtol=1e-5)
    for when, answer in zip(("before", "after"), made.get("answers", ()), strict=False):
        assert f"Generated {when}: {answer or 'no readable text'}" in page.words()


def pooled(page: Panel) -> None:
    """The same where the difference is over groups of tokens."""
    compared(page)
    assert page.made["first_map"].shape != page.made["second_map"].shape


def every_head(page: Panel) -> None:
    layer = page.at.session_state["layer"]
    page.shows("heads_off", page.made["changes"], at=layer, within=1e-3)


def faithful(page: Panel) -> None:
    """The curve of the strongest edges."""
    drawn = [row["KL"] for row in rows_of(page, "line")][::2]
    assert drawn == pytest.approx(page.made["cuts"].strongest.tolist(), abs=1e-6)


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
    positions = page.made["positions"]
    page.shows(f"{each}products", positions.products)
    if positions.table is not None:
        page.shows(f"{each}positions_table", positions.table)


def doubled(page: Panel) -> None:
    page.says(page.made["wrong"].spread)
    assert spread(page.made["right"].spread) in page.words()


def longer(page: Panel) -> None:
    """Before and after the trained length, half of the tokens each."""
    values = page.made["result"].effective_keys
    half = len(values) // 2
    assert half == opened_model.open_model(page.at.session_state["model"]).config.max_len
    page.says(values[:half].mean(), values[half:].mean())


def choice(page: Panel) -> None:
    """What can be drawn, and which token is."""
    final = page.made["probabilities"][0]
    shown = [row[-1] for row in page.board("stages") if row[-1] not in ("0", "≈ 0")]
    expected = [three(float(each)) for each in final[final >= LEAST_SHARE]]
    assert sorted(shown, key=float) == sorted(expected, key=float)
    rows = [row for row in page.header("stages")["rows"] if "sampled" in row["mark"]]
    assert [row["cells"][-1][0] for row in rows] == [three(float(final[page.made["token"]]))]


def beams(page: Panel) -> None:
    search = page.made["beams"]
    assert page.column("score") == [three(search.nodes[end].score) for end in search.ends]


def steering(page: Panel) -> None:
    """The clean text's metric at every strength, the length of the direction, and the text."""
    made = page.made
    drawn = [row["value"] for row in rows_of(page, "line") if row["which"] == "clean"]
    np.testing.assert_allclose(drawn, made["curve"].clean[0], rtol=1e-3, atol=1e-4)
    if "prompt" in made:
        assert page.printed[-1].strip() in page.words()


def first_rows(page: Panel) -> list[dict[str, Any]]:
    """The rows of the first layer of the first chart."""
    spec = json.loads(page.at.get("vega_lite_chart")[0].proto.spec)
    rows: list[dict[str, Any]] = spec["layer"][0]["data"]["values"]
    return rows


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
    assert f"has {page.printed[-1]} of {len(made['scores'].order):,} edges" in page.words()


def traced(page: Panel) -> None:
    """The grid, from where the texts differ."""
    seen = page.picture("traced_values")
    name = "change" if page.at.session_state["patch_number"] == "Metric" else "share"
    made = page.made[name].numpy()[-len(seen) :]
    np.testing.assert_allclose(seen, made, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(made).max()))


def paths(page: Panel) -> None:
    """Every head at the other end of an edge."""
    made, wiring, is_sender = page.made, page.made["wiring"], page.made["is_sender"]
    ends = [wiring.rows[row] if is_sender else wiring.columns[at] for row, at in made["edges"]]
    page.shows("path_ends", edge_grid(wiring, ends, made["lost"].tolist()).mT, within=2e-3)


def forced(page: Panel) -> None:
    chances = page.made["forcing"].probabilities
    assert torch.isfinite(chances).all()
    assert page.board("forcing")[3] == [three(float(each)) for each in chances]


def card(page: Panel) -> None:
    """The scores, the direct contributions and the strongest heads it composes with."""
    made = page.made
    page.says(*made["scores"].values(), made["effect"].to_answer, made["effect"].to_against)
    if "copied" in made:
        page.says(made["copied"].score, made["copied"].own_in_top)
    if page.at.session_state["layer"]:
        page.shows("composition", made["composed"][1].mT)
    page.says(*(source.weight for source in made["sources"]))


def evidence(page: Panel) -> None:
    """The numbers and the lines of the list."""
    made = page.made
    best = best_lines(made["activations"], made["by"], made["layer"], made["head"], 10)
    name = "norm" if "norm" in page.at.dataframe[-1].value else "weight"
    assert page.column(name) == [three(top.value) for top in best]
    assert page.column("line") == [f"{top.line + 1:,}" for top in best]

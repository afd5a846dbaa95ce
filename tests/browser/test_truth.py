"""Every view shows the numbers that the server sent for it."""

from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pytest

from explorer.analysis.circuits.top_lines import OF_TASK
from explorer.app.reader import new_key, owner_of
from explorer.runs.run import create
from explorer.runs.sweep import notes_of
from explorer.runs.worker import train_to_end
from tests.browser import page_views, screen
from tests.browser.page_views import View
from tests.browser.screen import (
    N,
    PageMessages,
    Pair,
    Read,
    cell,
    in_text,
    marks,
    most,
    table,
    texts,
)
from tests.browser.visiting import Visitor
from tests.calls import run_in_thread
from tests.reader import Reader
from tests.served import Server
from tests.tiny import tiny_spec

KEY = new_key()
SHAKESPEARE = "model=shakespeare&part=Decoder&layer=1&head=2&text=To+be,+or+not+to+be"
INDUCTION = (
    "part=Decoder&layer=0&head=0&text=abcdeabcdeab&corrupted=adcbeadcbeab&answer_token=c"
    "&against_token=e&attributed_by=EAP&steer_strength=1.5&path_reads=Keys&composed_by=K"
    f"&lines_from={quote_plus(OF_TASK)}"
)


def walk(visitor: Visitor) -> None:
    """To the last token, with the keys."""
    visitor.drawn("attention_lines")
    visitor.widget("attention_lines").locator(".stage").focus()
    for key in ["ArrowLeft", *["ArrowDown"] * 7]:
        visitor.page.keyboard.press(key)


def hover(visitor: Visitor) -> None:
    visitor.drawn("attention_tokens")
    visitor.widget("attention_tokens").locator('.chip[data-side="0"][data-at="6"]').hover()


def pinned_weight(_: dict[str, Any], planes: dict[str, bytes]) -> list[float]:
    """The weight of the pinned pair of eight tokens."""
    return [float(np.frombuffer(planes["weights"], "<f4").reshape(8, 8)[7, 6])]


def board(header: dict[str, Any], _: dict[str, bytes]) -> list[str]:
    return [cell[0] for row in header["rows"] for cell in row["cells"]]


def tree(header: dict[str, Any], _: dict[str, bytes]) -> list[str]:
    return [node["number"] for node in header["nodes"]]


def film(header: dict[str, Any], _: dict[str, bytes]) -> list[str]:
    return [text for _, text in header["captions"][header["at"]]]


BITS = in_text(rf"divergence of their rows: {N} bits")
MAP_CHANGE = cell("map_difference", 1, 0)
GOES = in_text(rf"goes from {N} to {N}")
SENTENCE, NEAREST = ".sentence >> nth=0", ".above .partner .value >> nth=0"
READS: dict[View, Read] = {
    ("overview", ""): cell("start_head", 7, 6),
    ("tokens", ""): table("bytes of the characters"),
    ("tokenizer_training", "Byte-level BPE"): table("token IDs"),
    ("tokenizer_training", "WordPiece"): table("textbook score"),
    ("tokenizer_training", "Unigram"): table("likeliest"),
    ("embedding_space", ""): in_text(rf"picture keeps {N} % of the differences"),
    ("positions", "Scheme"): cell("products", 3, 1),
    ("positions", "Permutation"): cell("order_map_0", 7, 6),
    ("positions", "Length extrapolation"): in_text(rf"On average {N} tokens up to position 63"),
    ("positions", "Doubled exponent"): cell("products_doubled", 3, 5),
    ("attention", "Matrix"): cell("attention_head", 7, 6),
    ("attention", "Lines"): texts("attention_lines", ".sentence", most(2, 7), walk),
    ("attention", "Tokens"): texts("attention_tokens", NEAREST, most(6), hover),
    ("heads", "Finder"): cell("heads_table", 1, 2),
    ("heads", "Similarity"): cell("similarity", 6, 1),
    ("heads", "Map of heads"): cell("head_of_map", 7, 6),
    ("heads", "Distribution"): in_text(rf"{N} visible cells; {N} are masked"),
    ("heads", "Programs"): in_text(rf"overlap {N} ± {N} on held-out lines"),
    ("heads", "Sinks"): table("sink weight", "if uniform"),
    ("heads", "Rollout"): cell("rollout", 7, 6),
    ("heads", "Flow"): cell("flow", 1, 2),
    ("heads", "Attribution"): cell("attribution", 1, 2),
    ("head_steps", ""): texts("stages", SENTENCE, pinned_weight),
    ("query_key", "Why"): in_text(rf"The score is {N} (?:above|below) the mean"),
    ("query_key", "Table"): cell("source_table", 0, 0),
    ("query_key", "Products"): table("score", "weight"),
    ("logit_lens", ""): table("after"),
    ("forward_pass", ""): cell("stage_values", 7, 6),
    ("generation", "Token by token"): texts("stages", ".board td", board),
    ("generation", "Beam search"): texts("beam_tree", ".node .number", tree),
    ("generation", "Teacher forcing"): texts("forcing", ".board td", board),
    ("masks", "I am a student"): cell("mask_both", 1, 3),
    ("masks", "Your sentence"): cell("weights", 7, 6),
    ("masks", "A padded batch"): cell("scores", 2, 6),
    ("interventions", "Patch lens"): texts("drag_from", ".board td .text", board),
    ("interventions", "Every head"): cell("heads_off", 1, 2),
    ("interventions", "Faithfulness"): marks("faithfulness", "strongest"),
    ("interventions", "Attention maps"): MAP_CHANGE,
    ("compare", "Another head"): MAP_CHANGE,
    ("compare", "Another sentence"): BITS,
    ("compare", "Another model"): BITS,
    ("compare", "Your interventions"): MAP_CHANGE,
    ("compare", "A training step"): cell("map_difference", 0, 0),
    ("circuits", "Heads"): table("part", "exact"),
    ("circuits", "Circuit"): table("edge", "exact"),
    ("circuits", "Head card"): in_text(rf"Direct contribution: \+?{N} to “.”, \+?{N} to “.”"),
    ("circuits", "Text as evidence"): in_text(rf"Line {N}: .* {N}\)"),
    ("circuits", "Steering"): marks("steered_over_strength", "corrupted"),
    ("circuits", "Causal tracing"): cell("traced_values", 0, 0),
    ("circuits", "Path patching"): cell("path_ends", 1, 0),
    ("circuits", "Over training"): in_text(rf"Metric: {N} for the clean text, {N}"),
    ("museum", "Exhibits"): table("twelve token IDs, untrained"),
    ("museum", "Systems"): table("parameters", "size"),
    **{
        view: in_text("As it should be: (.+)")
        for view in page_views.every()
        if view[1].startswith(page_views.FIND)
    },
    ("training", "Run"): cell("watched", 1, 1),
    ("training", "Data"): in_text(rf"{N} % of {N} tokens in the first 20 batches \({N} exam"),
    ("inside_training", "One update"): in_text(rf"their mean, {N} nats, .* The largest is {N}"),
    ("inside_training", "Head scores"): cell("scores_over_steps", 0, 0),
    ("inside_training", "Singular values"): GOES,
    ("inside_training", "Weight norms"): GOES,
    ("inside_training", "Loss landscape"): in_text(rf"{N} ?% of the squared distances"),
    ("inside_training", "Gradient noise"): table("trace of the covariance"),
    ("inside_training", "Dead units"): in_text(rf"{N} of {N} units are dead"),
    ("training_history", "Film"): texts("film", ".said dd", film),
    ("training_history", "Guess the pattern"): cell("pattern_0", 0, 0),
    ("training_history", "Two moments"): cell("map_difference", 0, 0),
    ("training_history", "When heads form"): in_text(rf"has a score of {N} or more"),
    ("runs", "All runs"): in_text(rf"{N} runs · {N} MB of"),
    ("runs", "Races and sweeps"): in_text(rf"exact match {N}\D[^.]*?(?:step|took|steps,) {N}"),
    ("checkpoints", "Parameters"): table("all parameters"),
    ("checkpoints", "Weights"): cell("weights_picture", 3, 7),
    ("checkpoints", "Norms"): cell("norms_decoder", 1, 3),
    ("checkpoints", "Singular values"): table("stable rank (norm² / largest²)"),
    ("checkpoints", "Heads"): table("layer", "Entropy"),
    ("checkpoints", "Diagnostics"): in_text(rf"{N} of {N} sampled matrices have singular"),
}
"""How a number of each view is read, on the screen and in the message."""


@pytest.fixture(scope="module")
def runs(server: Server) -> dict[str, str]:
    """What addresses ask for where it is not one of ASKS, by the page or by the view."""
    notes = notes_of("A race")
    specs = tiny_spec(lr=1e-3), tiny_spec(lr=1e-2)
    race = [create(server.runs, spec, owner=owner_of(KEY), notes=notes) for spec in specs]
    repeats = create(server.runs, tiny_spec("induction"), owner=owner_of(KEY))
    for run in (*race, repeats):
        train_to_end(run.folder)
    name = race[0].name
    return {
        "circuits": f"model=induction&{INDUCTION}",
        "Over training": f"model={repeats.name}&{INDUCTION}",
        "A training step": f"model={name}&part=Encoder&layer=0&head=0&text=cab&other_step=5",
        "inside_training": f"run={name}&update_after=4&update_stage=1&scores_part=Encoder",
        "training_history": f"model={name}&text=abcdef&part=Cross&layer=0&head=1&training_step=5",
        "runs": "&".join((f"sweep={notes.sweep}", *(f"runs={run.name}" for run in race))),
    }


ASKS = {
    "tokenizer_training": "learn_rules=50&learn_step=0",
    "positions": "scheme=Sinusoidal&times=2+×",
    "heads": "metric=Previous-token+score",
    "head_steps": "up_to=values&pinned=q7k6",
    "query_key": "query=7+·+␣be&key=6+·+␣to",
    "forward_pass": "stage=decoder.1.self_attn.weights",
    "generation": "temperature=0.7&top_k=40&top_p=0.8&seed=3&beams=2&length=4&alpha=0.6",
    "interventions": "edits=1.1~h.d.0.1.z",
    "compare": "edits=1.1~h.d.0.1.z&other_text=To+have,+or+not+to+have&other_model=reviews",
}


def address_of(page: str, name: str, runs: dict[str, str]) -> str:
    """What the address of a view asks for, but for the view."""
    if name.startswith(page_views.FIND):
        return "model=translation&layer=0&head=1&text=the+black+cat+sees+the+white+house&order=0"
    return runs.get(name) or runs.get(page) or f"{SHAKESPEARE}&{ASKS.get(page, '')}"


async def sent(url: str, page: str, query: str) -> PageMessages:
    """What the server sends to the owner of the runs, who opens this page."""
    reader = Reader(url, page=page, query=query)
    reader.key = KEY
    await reader.open()
    answer = await reader.act()
    await reader.close()
    assert not answer.failures
    return PageMessages(answer.elements)


@pytest.mark.timeout(1_000)
def test_what_is_shown_was_sent(
    visitor: Visitor, server: Server, runs: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """The browser reads one view of each kind of element; with `--thorough` it reads all."""
    messages, faults, seen = screen.messages_of(visitor.page), list[str](), set[str]()
    for (page, name), read in READS.items():
        place = "" if page == "overview" else page
        query = f"{address_of(page, name, runs)}{page_views.every()[page, name]}"
        kind = read.kind(run_in_thread(sent(server.url, place, query)))
        assert kind, f"{page}, {name}: no number was sent"
        if kind in seen and not request.config.getoption("--thorough"):
            continue
        seen.add(kind)
        messages.elements.clear()
        visitor.open(f"/{place}?{query}")
        visitor.has_everything()  # or a view moves while it is pointed at
        pairs = read.pairs(visitor, messages)
        assert pairs, f"{page}, {name}: nothing is compared"
        faults += [f"{page}, {name}: {pair.fault()}" for pair in pairs if pair.fault()]
    assert faults == []


def test_no_view_is_left_out() -> None:
    """What the pages' own tables offer has a number here that the server sends."""
    assert set(page_views.every()) == set(READS)
    assert set(page_views.CHOICES) <= set(page_views.pages())


def test_a_wrong_digit_is_seen() -> None:
    cases: list[tuple[str, float | str, bool]] = [
        ("0.319", 0.3186, True),
        ("0.318", 0.3186, False),  # cut off where it should be rounded
        ("0", 0.3, False),
        ("124", 123.6, True),
        ("123", 123.6, False),
        ("7.90e−7", 7.904e-7, True),
        ("7.90e−7", 7.96e-7, False),
        ("−1,024 logits", -1024, True),
        ("1,025", 1024, False),
        ("0.0424", "**0.0424**", True),
        ("0.0424", "0.0425", False),
    ]
    for shown, sent, is_right in cases:
        assert (Pair("a number", shown, sent).fault() == "") is is_right, (shown, sent)

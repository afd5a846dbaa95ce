"""Every page and every view, alone and in the app, of every kind of model, and of none."""

import json
from itertools import cycle, product
from pathlib import Path
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.map_summary import summary_of
from explorer.catalog import opened_model
from explorer.catalog.opened_model import open_model
from explorer.inference import forward_pass
from explorer.inference.forward_pass import run_text
from explorer.inference.results_cache import forget
from explorer.tasks import TASKS, pattern_score
from explorer.text.number_format import three
from tests import apps
from tests.apps import said, views
from tests.grids import grid
from tests.tiny import save_model, save_small_models
from tests.views.drawing import PAGES, every_view, path_of, press, with_overflow, without_numbers

READING = ("overview/overview", "input/tokens", "attention/attention")
NOT_FINITE = "This forward pass has values that are not finite, first in "
WITHOUT_PASS = {
    ("attention/masks", "I am a student"),
    ("experiments/museum", "Systems"),
    ("input/positions", "Scheme"),
    ("input/positions", "Doubled exponent"),
    *(("input/tokenizer_training", each) for each in ("Byte-level BPE", "WordPiece", "Unigram")),
    *(("models/checkpoints", each) for each in ("Parameters", "Weights", "Norms")),
    *(("models/checkpoints", each) for each in ("Singular values", "Diagnostics")),
    *(("training/training", each) for each in ("Run", "Data")),
    *(("training/runs", each) for each in ("All runs", "Races and sweeps")),
}
"""Views without the chosen model's forward pass over the text."""
GENERATION = "generation/generation"
STAGES, STREAM = "forward_pass/forward_pass", "decoder.0.resid_mid"
MASKS = {"mask_padding", "mask_causal", "mask_both"}
MAPS = {"map_first", "map_second"}
DRAWN: dict[tuple[str, ...], set[str]] = {
    ("attention/heads", "Finder"): {"best_heads", "heads_table", "found_head"},
    ("attention/heads", "Similarity"): {"nearest_heads", "similarity"},
    ("attention/heads", "Map of heads"): {"head_of_map"},
    ("attention/heads", "Distribution"): {"decile_0"},
    ("attention/heads", "Rollout"): {"rollout"},
    ("attention/heads", "Flow"): {"flow"},
    ("attention/heads", "Attribution"): {"attribution"},
    ("generation/generation", "Token by token"): {
        *("decoded", "stages", "branches_tree", "decoded_head", "written_steps")
    },
    ("generation/generation", "Beam search"): {"beam_tree"},
    ("generation/generation", "Teacher forcing"): {"forcing"},
    ("attention/head_steps",): {"stages"},
    ("forward_pass/forward_pass",): {"stage_list", "stage_values"},
    ("attention/masks", "I am a student"): MASKS,
    ("attention/masks", "Your sentence"): {*MASKS, "scores", "masked", "weights"},
    ("attention/masks", "A padded batch"): {*MASKS, "scores", "masked", "weights"},
    ("experiments/compare", "Another head"): {*MAPS, "map_difference"},
    ("experiments/compare", "Another sentence"): {*MAPS, "map_difference"},
    ("experiments/compare", "Your interventions"): {*MAPS, "map_difference"},
    ("experiments/compare", "Another model"): MAPS,
    ("models/checkpoints", "Weights"): {"weights_picture"},
    ("models/checkpoints", "Heads"): {"head_statistics"},
}
"""The pictures of views that draw them of every model."""
NOTHING_DRAWN = (
    "Rollout and flow follow the residual stream of one stack",
    "The weights of every head are NaN, so no metric has a value",
    "The weights of this head are NaN, so it has no similarity to others.",
    "Some weights of this head are not finite, so they cannot be sorted",
    "An answer is attributed to at least two tokens that are not special",
    "is not finite, so it says nothing",
    "This sentence is too short for a batch with its own beginning: add a word.",
)
NOTHING = "There is nothing to read yet: type a sentence."
UNKNOWN = "Not in this model's vocabulary, so read as <unk>: "
STRANGE = {  # and what every page says of it
    "": NOTHING,
    "   ": NOTHING,
    "a" * 100_000: "Your text has 100,000 characters; only the first 20,000 characters were read",
    "word " * 300: "This text is 301 tokens long and this model reads at most 24",
    "😀🏳️‍🌈 cat": f"{UNKNOWN}“😀",
    "שלום עולם": f"{UNKNOWN}“\u2068שלום\u2069”",
    "\x00\x07\x1b[31m": f"{UNKNOWN}“<U+0000>",
    "<script>alert(1)</script>": f"{UNKNOWN}“<”, “script”",
    "![x](http://example.com/x.png) **b** $x$": f"{UNKNOWN}“!",
    "a\u202eb\u200d": UNKNOWN,
}


pytestmark = pytest.mark.usefixtures("small_models")


def assert_draws(at: AppTest, path: str, asked: dict[str, str]) -> None:
    """The pictures of this view are there, or a sentence says why not."""
    drawn = DRAWN.get((path, *asked.values()), set())
    assert drawn <= views(at) or any(each in said(at) for each in NOTHING_DRAWN)


def test_a_classifier_and_a_single_token_have_every_view(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """A classifier of one word; where it writes none, a decoder of one letter.

    Each view opens the model once and passes the text once at most. Of the encoder-decoder,
    test_export.py draws every view.
    """
    opened = Mock(wraps=opened_model._open)
    passed = Mock(wraps=forward_pass.run_batch_uncached)
    monkeypatch.setattr(opened_model, "_open", opened)
    monkeypatch.setattr(forward_pass, "run_batch_uncached", passed)
    for path, asked in every_view():
        model, text = ("letters", "t") if path == GENERATION else ("reviews", "cat")
        with subtests.test(path=path, asked=asked):
            forget(open_model(model))
            opened.reset_mock()
            passed.reset_mock()
            at = apps.page(path, model=model, text=text, **asked)
            times = [each.args[0] for each in opened.mock_calls].count(model)
            assert times == 1 or path == "training/training"  # which may open that of its task
            passes = [(each.args[0].name, each.args[1]) for each in passed.mock_calls]
            assert passes.count((model, (text,))) <= 1
            assert len(at.title) == 1
            assert_draws(at, path, asked)
    at = apps.page(GENERATION, model="reviews")
    assert "This model does not generate text: choose one with a decoder." in said(at)
    assert not views(at)


def test_what_is_no_number_is_said(own_models: Path) -> None:
    save_model(own_models, "broken", None, "the cat sleeps", positions="rotary")
    save_model(own_models, "other")
    without_numbers("broken")
    for path, asked, sentence in (
        ("overview/overview", {}, "The probabilities are not a number (NaN)"),
        ("attention/attention", {}, "The probabilities are not a number (NaN)"),
        ("attention/head_steps", {}, "no value"),
        ("input/positions", {"lab": "Permutation"}, "The final vectors are NaN, so no change"),
        ("experiments/compare", {}, "There is no divergence: a weight is not a number"),
        (GENERATION, {}, "The logits of this model are NaN, so it generates nothing"),
        (STAGES, {"stage": STREAM}, "row, recomputed in float64: no value is finite"),
    ):
        at = apps.page(path, model="broken", **asked)
        assert sentence in said(at)
        if path == GENERATION:
            assert not views(at)
    assert "max relative error" not in said(at)
    assert any(r"\text{NaN} = " in latex.value for latex in at.latex)


def test_a_pass_that_overflows_is_said_on_every_page(
    own_models: Path, subtests: pytest.Subtests, request: pytest.FixtureRequest
) -> None:
    """And what can be drawn is drawn; Generation, which needs probabilities, has but a sentence.

    Each view has one of five models in turn, with `--thorough` each of them. The queries of one
    are no numbers, nor is anything said of it that is computed from them.
    """
    save_model(own_models, "sound", None, "the cat sleeps")
    models = [*product(("decoder", "encoder-decoder"), ("layer", "logits")), ("decoder", "queries")]
    for kind, part in models:
        save_model(own_models, f"{kind} {part}", None, "the cat sleeps", kind=kind)
        if part == "queries":
            without_numbers(f"{kind} {part}")
        else:
            with_overflow(f"{kind} {part}", part)
    is_thorough = request.config.getoption("--thorough")
    pairs = product(every_view(), models) if is_thorough else zip(every_view(), cycle(models))
    for (path, asked), (kind, part) in pairs:
        with subtests.test(path=path, asked=asked, kind=kind, part=part):
            # Every model fits the first exhibit, and is compared with a sound one.
            address = {"model": f"{kind} {part}", "exhibit": "1", "other_model": "sound"}
            at = apps.page(path, **address, own_lines="the cat sleeps the cat", **asked)
            if path == GENERATION:
                assert " so it generates nothing: choose another model." in said(at)
                continue
            assert_draws(at, path, asked)
            if (path, *asked.values()) not in WITHOUT_PASS:
                assert said(at).count(NOT_FINITE) == 1
            if part == "queries" and "Another model" not in asked.values():  # the other is sound
                never = ("no value %", "likeliest tokens", "Every row sums to 1")
                assert not any(words in said(at) for words in never)


@grid("text, path", STRANGE, READING)
def test_strange_text_is_shown_or_refused(path: str, text: str) -> None:
    at = apps.page(path)
    apps.run(at.text_input(key="text").set_value(text))
    assert len(at.title) == 1
    assert STRANGE[text] in said(at)
    words = text[:12].strip()
    assert not words or all(words not in prose.value for prose in at.markdown)


def test_a_damaged_model_is_one_sentence_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    damaged = save_small_models(tmp_path / "damaged")
    (damaged / "reviews" / "model.safetensors").write_bytes(b"nonsense")
    (damaged / "letters" / "config.json").write_text(json.dumps({"kind": "banana"}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(damaged))
    for path in map(path_of, PAGES):
        with subtests.test(path=path):
            at = apps.page(path, model="reviews")
            assert path not in READING or "The model reviews cannot be opened" in said(at)
            if path not in READING:
                continue
            apps.run(at.selectbox(key="model").set_value("reverse"))
            assert "cannot be opened" not in said(at)


def test_what_is_said_of_a_map_is_computed_from_it(shipped_models: None) -> None:
    for model, text in (("reverse", "zorpblik"), ("translation", "zorp blik fnord")):
        at = apps.page("overview/overview", model=model, text=text, part="Cross")
        assert TASKS[model].expectation not in said(at), "it may not be so on this text"
        forward, part = run_text(open_model(model), text), "decoder.cross_attn"
        layer, head = (int(at.session_state[name]) for name in ("layer", "head"))
        weights, allowed = forward.weights(part, layer, head), forward.mask(part, layer)
        rows, columns = forward.rows(part), forward.columns(part)
        words = forward.part(part).words.cell
        assert summary_of(weights, allowed, rows, columns, words) in said(at)
    assert "so read as <unk>: “zorp”, “blik”, “fnord”." in said(at)


def test_the_expected_pattern_is_said_as_its_weight(shipped_models: None) -> None:
    opened = open_model("reverse")
    at = apps.page("overview/overview", model="reverse", text=opened.example)
    layer, head = (int(at.session_state[name]) for name in ("layer", "head"))
    forward = run_text(opened, opened.example)
    assert opened.task is not None
    pattern = opened.task.pattern(forward.source, forward.target)
    assert pattern is not None
    score = pattern_score(forward.weights("decoder.cross_attn", layer, head), pattern)
    assert f"keys that the task expects a weight of {three(float(score))} on average" in said(at)


def test_a_checkpoint_is_opened_by_its_button() -> None:
    at = press(apps.page("models/checkpoints"), "open_reverse")
    assert at.session_state["model"] == "reverse"
    assert at.text_input(key="text").value == "31415"


def test_masks_open_with_the_triangle(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = apps.page("attention/masks", model="translation")
    assert at.session_state["example"] == "I am a student"
    figure = apps.exported(at, monkeypatch)
    assert list(figure.rows) == list(figure.columns) == ["<s>", "I", "am", "a", "student"]

"""Every page, alone and inside the app; and what is chosen once, on all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.parts import WORDS
from explorer.tasks import TASKS
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests.grids import grid
from tests.shelf import WORDS as WORDS_KNOWN
from tests.shelf import put, shelf

ROOT = Path(__file__).resolve().parents[2]
SHELL = str(ROOT / "explorer" / "shell.py")
PAGES = sorted(ROOT.glob("pages/*/*.py"))
READING = [page for page in PAGES if page.stem in ("start", "tokens", "attention", "masks")]
ALL_MASKS = ("mask_padding", "mask_causal", "mask_both", "scores", "masked", "weights")
NOTHING = "There is nothing to read yet: type a sentence."
UNKNOWN = "Not in this model's vocabulary, so read as <unk>: "
STRANGE = {  # and what every page says of it
    "": NOTHING,
    "   ": NOTHING,
    "a" * 100_000: "Your text had 100,000 characters; the first 2,000 are kept.",
    "word " * 300: "This text is 301 tokens long and this model reads at most 24",
    "😀🏳️‍🌈 cat": f"{UNKNOWN}“😀",
    "שלום עולם": f"{UNKNOWN}“שלום”",
    "\x00\x07\x1b[31m": f"{UNKNOWN}“<U+0000>",
    "<script>alert(1)</script>": f"{UNKNOWN}“<”, “script”",
    "![x](http://example.com/x.png) **b** $x$": f"{UNKNOWN}“!",
    "a\u202eb\u200d": UNKNOWN,
}


pytestmark = pytest.mark.usefixtures("small_models")


def app(**address: str) -> AppTest:
    """The app as it is opened by an address."""
    at = AppTest.from_file(SHELL, default_timeout=60)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run()


def inside(page: Path, **address: str) -> AppTest:
    """One page, opened inside the app."""
    return app(**address).switch_page(f"../pages/{page.parent.name}/{page.name}").run()


def said(at: AppTest) -> str:
    """Everything the page says in plain text."""
    return "\n".join(text.value for text in at.text)


def test_a_page_runs_alone(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page):
            at = AppTest.from_file(str(page), default_timeout=60).run()
            assert not at.exception
            assert len(at.title) == 1


def test_a_page_runs_inside_the_app(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page):
            at = inside(page)
            assert not at.exception
            assert len(at.title) == 1
            assert at.text_input(key="text").value == "the black cat sleeps"


@grid("model, page", ["letters", "reviews", "reverse"], PAGES)
def test_a_page_runs_with_every_kind_of_model(page: Path, model: str) -> None:
    assert not inside(page, model=model).exception


@grid("part, page", ["Encoder", "Decoder", "Cross"], READING)
def test_a_page_shows_every_kind_of_attention(page: Path, part: str) -> None:
    at = inside(page, part=part)
    assert not at.exception
    shown = {"Encoder": "encoder.self_attn", "Decoder": "decoder.self_attn"}
    assert at.session_state["part"] == shown.get(part, "decoder.cross_attn")


@grid("text, page", STRANGE, READING)
def test_strange_text_is_shown_or_refused(page: Path, text: str) -> None:
    at = inside(page)
    at.text_input(key="text").set_value(text).run()
    assert not at.exception
    assert len(at.title) == 1
    assert STRANGE[text] in said(at)
    words = text[:12].strip()
    assert not words or all(words not in prose.value for prose in at.markdown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_damaged_model_is_one_sentence_and_the_rest_goes_on(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = shelf(tmp_path / "damaged")
    (damaged / "reviews" / "model.safetensors").write_bytes(b"nonsense")
    (damaged / "letters" / "config.json").write_text(json.dumps({"kind": "banana"}))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(damaged))
    at = inside(page, model="reviews")
    assert not at.exception
    if page in READING:
        assert "The model reviews cannot be opened" in said(at)
    at.selectbox(key="model").set_value("reverse").run()
    assert not at.exception
    assert "cannot be opened" not in said(at) or page.stem == "checkpoints"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_without_any_model_a_page_says_what_to_do(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "nothing"))
    at = inside(page)
    assert not at.exception
    if page in READING:
        assert "There is no trained model here yet" in said(at)


def test_stepping_ends_in_what_the_model_reads() -> None:
    at = inside(ROOT / "pages/look/tokens.py")
    last = int(at.slider(key="step").max)
    for _ in range(last):
        at.button(key="step_next").click().run()
    assert at.slider(key="step").value == last
    assert at.button(key="step_next").disabled
    assert "Add the special tokens" in said(at)


@grid(
    "scheme, model",
    ["Sinusoidal", "Learned", "Rotary", "ALiBi", "None"],
    ["translation", "letters"],
)
def test_every_scheme_of_positions_is_drawn(model: str, scheme: str) -> None:
    at = inside(ROOT / "pages/look/positions.py", model=model, scheme=scheme)
    assert not at.exception
    assert ("no such trained positions" in said(at)) == (scheme in ("Learned", "Relative"))


@grid(
    "example, model",
    ["I am a student", "Your sentence", "A padded batch"],
    ["translation", "letters", "reviews"],
)
def test_every_example_of_masks_is_drawn(model: str, example: str) -> None:
    at = inside(ROOT / "pages/look/masks.py", model=model, example=example)
    assert not at.exception
    pictures = {"mask_padding", "mask_causal", "mask_both"}
    if example != "I am a student":
        pictures |= {"scores", "masked", "weights"}
    assert pictures == {view.key for view in at.get("bidi_component")} & {*ALL_MASKS}


def test_the_expectation_is_said_where_it_is_to_be_seen() -> None:
    start = ROOT / "pages/look/start.py"
    expected = TASKS["translation"].expectation
    assert expected in said(inside(start, part="Cross"))
    at = inside(start, part="Encoder")
    assert expected not in said(at)
    assert WORDS["encoder.self_attn"].explanation in said(at)


def test_where_there_is_no_causal_mask_none_is_claimed(subtests: pytest.Subtests) -> None:
    for part in ["Encoder", "Cross"]:
        with subtests.test(part=part):
            at = inside(ROOT / "pages/look/masks.py", part=part)
            assert any(prose.value.startswith("**No causal mask here: ") for prose in at.markdown)


def test_the_scores_of_alibi_include_its_bias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = word_tokenizer(WORDS_KNOWN, DECODER)
    put(tmp_path / "far", "far", words, "the cat", kind="decoder", positions="alibi")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "far"))
    at = inside(ROOT / "pages/look/masks.py", model="far")
    assert not at.exception
    assert any("A bias by the distance" in caption.value for caption in at.caption)


def test_a_model_has_its_title_beside_its_name() -> None:
    at = inside(ROOT / "pages/models/checkpoints.py", model="letters")
    captions = [caption.value for caption in at.caption]
    assert "Letters" in captions
    assert "letters" in said(at)
    assert any(caption.startswith("decoder, 2 × 4 heads") for caption in captions)


def test_what_is_cut_is_said() -> None:
    at = inside(ROOT / "pages/look/start.py", model="letters")
    assert "The 8 likeliest tokens." in [caption.value for caption in at.caption]
    at = inside(ROOT / "pages/look/positions.py")
    assert "Shown are the first 48 positions." in [caption.value for caption in at.caption]


def test_a_model_without_a_head_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = word_tokenizer(WORDS_KNOWN, DECODER)
    put(tmp_path / "bare", "bare", words, "the cat", kind="decoder", head="none")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "bare"))
    at = inside(ROOT / "pages/look/start.py", model="bare")
    assert not at.exception
    assert all("The model writes" not in prose.value for prose in at.markdown)
    assert "it ends in vectors, one for each token" in said(at)
    at = inside(ROOT / "pages/look/walk.py", model="bare", stage="decoder.final")
    captions = "".join(each.value for each in at.caption)
    assert "The pass ends here. This model gives no answer" in captions


def test_a_checkpoint_is_opened_by_its_button() -> None:
    at = inside(ROOT / "pages/models/checkpoints.py")
    at.button(key="open_reverse").click().run()
    assert not at.exception
    assert at.session_state["model"] == "reverse"
    assert at.text_input(key="text").value == "31415"

"""The Museum: what every exhibit shows and pastes, the hunt, and the documents' systems."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.default_head import strongest_head
from explorer.app.session import SESSION_KEY
from explorer.catalog import opened_model, uploads
from explorer.catalog.parameters import count_parameters
from explorer.components.mounting import PageViews
from explorer.inference import forward_pass
from explorer.inference.generation_limits import longest_answer
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunError
from explorer.system import data_folders
from explorer.tasks import TASKS
from explorer.text.number_format import megabytes, three
from explorer.views.museum import document_systems, find_mistake, paired_training
from explorer.views.museum.document_systems import LEARNING_RATE, SYSTEMS
from explorer.views.museum.exhibits import EXHIBITS, FINDABLE
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.museum.measured_run import MeasuredRun, right_run
from explorer.views.museum.mistakes import FILLS, MISTAKES
from models import Transformer
from models.families.family_presets import CHOSEN
from models.presets import PRESETS
from models.training import train
from tests import apps
from tests.apps import said
from tests.tiny import save_model
from tests.views.drawing import press, run

HOW_TO_SPOT, IN_BOTH = "How to spot it", "in both: here it does not show the mistake"
BY_PRESET = {system.preset: system for system in SYSTEMS}
CLASSIFIER = "web tutorial, classifier"

pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "experiments/museum", model="translation")
page_with_code = partial(apps.page, "experiments/museum", {"code": True}, model="translation")


def tables(at: AppTest) -> str:
    return "\n".join(table.value.to_string() for table in at.table)


def case(name: str) -> MeasuredRun:
    model = opened_model.open_model(name)
    seen = forward_pass.run_text(model, model.example)
    return right_run(model, seen, (seen.parts[-1].name, 0, 0))


@pytest.fixture(scope="module")
def shown(_small_models: Path) -> Iterator[dict[str, AppTest]]:
    """Every exhibit on the encoder-decoder, with its lines to paste; only to be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_CHECKPOINTS", str(_small_models))
        patch.setattr(paired_training, "PAIRED_STEPS", 4)
        yield {exhibit.name: page_with_code(exhibit=exhibit.label) for exhibit in EXHIBITS}


def test_an_exhibit_says_what_is_right_how_to_spot_it_and_the_document_s_own_numbers(
    shown: dict[str, AppTest],
) -> None:
    others = zip(EXHIBITS[::5], ("letters", "reviews", "reverse"), strict=True)
    drawn = [(exhibit, shown[exhibit.name]) for exhibit in EXHIBITS]
    drawn += [(each, page(model=other, exhibit=each.label)) for each, other in others]
    for exhibit, at in drawn:
        for words in (exhibit.right, exhibit.how_to_spot):
            assert words in said(at), exhibit.name
        assert HOW_TO_SPOT in said(at) or IN_BOTH in said(at), exhibit.name
        for row in exhibit.numbers:
            assert all(value in tables(at) for value in row), row


def test_the_number_is_of_both_runs_and_the_picture_shows_it(shown: dict[str, AppTest]) -> None:
    """A number that is the same in both models shows nothing."""
    right = case("translation")
    for exhibit in FINDABLE:
        mistake, instrument = MISTAKES[exhibit.name], INSTRUMENTS[exhibit.instrument]
        assert mistake.misfit(right.opened.config) is None, "this model can have all of them"
        wrong = instrument(right.with_model(mistake.make(right.model)))
        numbers = [wrong.short, instrument(right).short]
        if exhibit.name == "norm-order":  # this model is pre-norm, as the mistake is
            numbers.reverse()
            titles = "With the mistake: pre-norm", "Right: post-norm"
            assert all(title in said(shown[exhibit.name]) for title in titles)
        words = f"{HOW_TO_SPOT}: {exhibit.instrument}, {numbers[0]} against {numbers[1]}."
        if numbers[0] == numbers[1]:
            words = f"{exhibit.instrument}, {numbers[0]} {IN_BOTH}."
            assert HOW_TO_SPOT not in said(shown[exhibit.name])
        assert words in said(shown[exhibit.name])
    assert IN_BOTH in said(shown["never-appends"]), "both models repeat themselves here"
    config = right.model.config
    wide, narrow = (three(1 / math.sqrt(d)) for d in (config.d_model, config.head_width))
    assert f"Score scale, {wide} against {narrow}." in said(shown["wrong-scale"])
    head = strongest_head(right.opened, right.forward)
    assert head is not None
    right = replace(right, head=head)
    for number in [2, 4, 7, 8, 9]:  # of these the map of the head is the same in both runs
        exhibit = EXHIBITS[number - 1]
        made = right.with_model(MISTAKES[exhibit.name].make(right.model))
        drawn, should = (INSTRUMENTS[exhibit.instrument](each).picture for each in (made, right))
        assert drawn is not None
        assert should is not None
        assert not drawn.is_like(should)
        views = shown[exhibit.name].session_state[SESSION_KEY].state(PageViews)
        (figure,) = views.drawn["museum_wrong"].figures()
        assert figure.title.startswith(drawn.title)


def test_the_lines_run_as_pasted(shown: dict[str, AppTest], small_models: Path) -> None:
    """They print sentences or rows of the page in its order."""
    for exhibit in EXHIBITS:
        if exhibit.name == "random-labels":  # its lines are run below
            continue
        at = shown[exhibit.name]
        _, lines = run(at.code[0].value, small_models)
        if exhibit.instrument:
            lines = [line[:1].upper() + line[1:] for line in lines]
        rows = [row for table in at.table for row in table.value.astype(str).to_numpy().tolist()]
        on_screen = [*(text.value for text in at.text), *(" ".join(row) for row in rows)]
        assert len(lines) >= 2
        assert [words for words in on_screen if words in lines] == lines, exhibit.name


@pytest.mark.parametrize("name", ["softmax-twice", "random-labels"])
def test_two_trainings(name: str, small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random labels the lines print the last points of the curves."""
    monkeypatch.setattr(paired_training, "PAIRED_STEPS", 4)
    monkeypatch.setattr(paired_training.train_on_random_labels, "__defaults__", (4,))
    (exhibit,) = (each for each in EXHIBITS if each.name == name)
    at = page_with_code(exhibit=exhibit.label)
    lines = at.code[0].value
    press(at, "train_both")
    assert "at step" in said(at)
    if name == "random-labels":
        accuracy = r"spot it: an accuracy of \S+ on the training batch, of \S+ on"
        assert re.search(accuracy, said(at))
        _, printed = run(lines, small_models)
        points = [line.split(" ", 1)[1].rpartition(" ") for line in printed[-3:]]
        on_screen = at.text[-1].value.partition(": ")[2].rstrip(".").split("; ")
        assert on_screen == [f"{curve}: {three(float(value))}" for curve, _, value in points]


def test_switched_off_both_runs_are_alike() -> None:
    at = page(exhibit=EXHIBITS[4].label, mistake="false")
    assert re.search(r"Without the mistake: Swapped slices, \S+\.\*\*", said(at))
    assert HOW_TO_SPOT not in said(at), "there is no mistake to spot"
    at.toggle(key="mistake").set_value(True).run()
    assert "Swapped slices, 0 against" in said(at)


def test_the_fill_can_be_switched() -> None:
    right = case("translation")
    for fill in FILLS:
        at = page_with_code(exhibit=EXHIBITS[8].label, fill=fill)
        wrong = MISTAKES[f"filled-row {fill}"].make(right.model)
        found = INSTRUMENTS["Fully masked row"](right.with_model(wrong))
        assert f"Fully masked row, {found.short} against 0." in said(at)
        assert (found.short == "NaN") is (fill == "−∞")
        assert f"'filled-row {fill}'" in at.code[0].value


def test_a_mistake_that_no_model_can_have_promises_no_more_than_there_is(own_models: Path) -> None:
    save_model(own_models, "sandwich", norm_position="sandwich")
    at = page_with_code(model="sandwich", exhibit=EXHIBITS[12].label)
    assert "No model here can have this mistake: it has norms before and after" in said(at)
    assert "own numbers are below" not in said(at)
    assert "MISTAKES" not in at.code[0].value


def test_every_instrument_in_the_hunt() -> None:
    models = cycle(["translation", "letters", "translation", "reviews"])
    for instrument, model in zip(INSTRUMENTS, models, strict=False):
        at = page(model=model, room="Find the mistake", instrument=instrument)
        assert HOW_TO_SPOT not in said(at)
        assert "As it should be: " in said(at) or model != "translation"


def test_find_it_and_the_score(small_models: Path) -> None:
    """The right answer at once; then a wrong one, a second try, and the end of it.

    The lines hold the instrument to the right run, and to both once the answer is out.
    """
    hidden = find_mistake.mistakes_in_order(list(FINDABLE), 3)
    assert hidden == find_mistake.mistakes_in_order(list(FINDABLE), 3)
    assert hidden != find_mistake.mistakes_in_order(list(FINDABLE), 1)
    assert set(hidden) == set(FINDABLE)
    at = page_with_code(room="Find the mistake", order="3", instrument="Score scale")

    def guess(question: int, answer: int) -> str:
        key = f"guess_translation_3_{question}"
        at.selectbox(key=key).set_value(hidden[answer].label).run()
        return said(press(at, "answer"))

    before = at.code[0].value
    assert "MISTAKES[" not in before
    found = guess(0, 0)
    for words in ("Found.", hidden[0].instrument, "Found so far: 1 of 1."):
        assert words in found
    assert "MISTAKES[" in at.code[0].value
    for lines in (before, at.code[0].value):
        assert "'Score scale'" in lines
        run(lines, small_models)
    assert HOW_TO_SPOT not in said(press(at, "next_run"))
    missed = guess(1, 0)
    assert f"Not {hidden[0].label}. You have a second try" in missed
    assert HOW_TO_SPOT not in missed
    assert at.button(key="answer").disabled, "the same answer is none"
    missed = guess(1, 2)
    assert "Not that one either." in missed
    assert "Found so far: 1 of 2." in missed
    at.selectbox(key="guess_translation_3_1").set_value(hidden[1].label).run()
    assert at.button(key="answer").disabled, "there is no third try"

    at = page(room="Find the mistake", order="3")
    guess(0, 5)
    assert "Found so far: 1 of 1." in guess(0, 0), "a second try counts"


def test_the_documents_disagree_and_each_system_says_how_large_it_is() -> None:
    """As SEEDS has it, from the configs that are opened and trained."""
    shared = "without bias, shared as written, per head here"
    web = ("yes", "−∞", "post, and a final one", "0.1", "with bias, per head", "512")
    assert {each.preset: tuple(document_systems.choices(each).values()) for each in SYSTEMS} == {
        "lecture handout": ("no", "−1e9", "post", "0", "with bias, per head", "5,000"),
        "notebook tutorial": ("yes", "−1e20", "post", "0.2", shared, "12"),
        "web tutorial, encoder": web,
        CLASSIFIER: web,
        "repository README": ("yes", "−∞", "post", "0.1", "with bias, per head", "5,000"),
    }
    for preset, each in BY_PRESET.items():
        at = page(room="Systems", system=preset)
        count = count_parameters(each.config)
        assert f"{count:,} parameters." in said(at)
        assert at.button(key="open_system").label.endswith(f"(makes {megabytes(4 * count)} first)")
        words = document_systems.tokenizer_for(preset)
        assert words.vocab_size == each.config.vocab_size
        sentence = words.encode(each.sentence)
        assert words.unk_id not in [token.id for token in sentence]
    assert all(each in tables(at) for each in ("−1e20", "post, and a final one", shared))


def test_a_system_is_made_once_and_the_sentence_stays_where_its_words_are_known() -> None:
    """A sentence that a system cannot read is replaced, and the page says why.

    The first click makes the system, which takes no room from uploads; a link finds it.
    """
    classifier = BY_PRESET[CLASSIFIER]
    why = "Not in this model's vocabulary, so read as <unk>: “red”, “fish”. So your sentence"
    known, root = "the very good cat", data_folders.systems_root()
    folder = document_systems.folder_of(classifier, root)
    for text, read in [(known, known), ("the red fish", classifier.sentence)]:
        at = press(page(room="Systems", system=CLASSIFIER, text=text), "open_system")
        assert at.selectbox(key="model").value == folder.name == "web-tutorial-classifier"
        assert at.text_input(key="text").value == read
        assert (why in said(at)) is (text != read)
    assert f"{folder.name} is open and reads" in said(at)
    assert at.button(key="open_system").label == "It is open"
    size = (folder / "model.safetensors").stat().st_size
    assert size > 4 * count_parameters(classifier.config), "all of it"
    assert document_systems.is_saved(classifier, root), "it is not made again"
    assert not data_folders.uploads_root().exists()
    assert uploads.find_upload(folder.name) == folder


def test_what_is_untrained_writes_little() -> None:
    model = opened_model.open_model("translation")
    assert longest_answer(model) == min(64, model.config.max_len)
    untrained = replace(model, run={"untrained": True}, config=model.config.replace(max_len=500))
    assert longest_answer(untrained) == 12


def test_a_system_can_be_trained_on_its_task() -> None:
    """Its choices, a task of this app; at the document's own size it is refused with its count."""
    for each in SYSTEMS:
        task, theirs = TASKS[each.task], PRESETS[each.preset]
        how = {"like": each.preset, "lr": LEARNING_RATE, "steps": 2, "batch_size": 4}
        spec = spec_of(task, how)
        for field in CHOSEN:
            assert getattr(spec.model, field) == getattr(theirs, field)
        assert spec.model.vocab_size == task.model.vocab_size
        batches = [task.batch(step, spec.training) for step in range(2)]
        reports = train(Transformer(spec.model), batches.__getitem__, spec.training)
        assert [report.step for report in reports] == [1, 2]
        if theirs.d_model == 512:
            size = {"d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048}
            many = r"has 44,\d{3},\d{3} parameters; the limit is 20,000,000"
            with pytest.raises(RunError, match=many):
                spec_of(task, {"like": each.preset, **size})
    paper = spec_of(TASKS["translation"], {"like": "paper"}).model
    for field in CHOSEN:
        assert getattr(paper, field) == getattr(PRESETS["paper"], field)

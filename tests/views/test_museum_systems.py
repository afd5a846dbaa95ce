"""The documents' systems in the Museum: how large, opened untrained at their own size, trained."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.catalog import folders, opened_model, uploads
from explorer.inference import answers, forward_pass
from explorer.runs.run import RunError
from explorer.runs.settings import spec_of
from explorer.tasks import TASKS
from explorer.views.museum import document_systems
from explorer.views.museum.document_systems import SYSTEMS
from models import Transformer
from models.families.styles import CHOSEN
from models.presets import PRESETS
from models.training import PAPER_TRAINING, train
from tests import apps
from tests.apps import said
from tests.views.drawing import press, put_persistent

BY_PRESET = {system.preset: system for system in SYSTEMS}
CLASSIFIER = "web tutorial, classifier"
SHAPES = {
    "encoder.tokens": "batch 1 × tokens 10",
    "encoder.embed": "batch 1 × tokens 10 → batch 1 × tokens 10 × d_model 512",
    "encoder.0.self_attn.q": "batch 1 × tokens 10 × heads·d_head 512 → batch 1 × tokens 10 × "
    "heads 8 × d_head 64 → batch 1 × heads 8 × tokens 10 × d_head 64",
    "encoder.5.self_attn.scores": "batch 1 × heads 8 × queries 10 × keys 10",
    "encoder.5.self_attn.concat": "heads 8 × d_head 64 → batch 1 × tokens 10 × heads·d_head 512",
    "encoder.5.mlp.hidden": "batch 1 × tokens 10 × d_ff 2,048",
    "decoder.5.cross_attn.weights": " × keys 10",
    "logits": " × vocabulary 11",
}
TEN = "I am a student I am a student dog"
"""Nine words and their end: the notebook steps through 10 tokens, at these sizes."""
pytestmark = pytest.mark.usefixtures("small_models")


def page(system: str, **address: str) -> AppTest:
    return apps.page("experiments/museum", room="Systems", system=system, **address)


@pytest.fixture
def root(small_models: Path) -> Iterator[Path]:
    """Where systems are made; hundreds of megabytes do not stay behind a test."""
    yield folders.systems_root()
    shutil.rmtree(folders.systems_root(), ignore_errors=True)


def test_the_documents_disagree() -> None:
    """As SEEDS has it, from the configs that are opened and trained."""
    web = ("yes", "−∞", "post, and a final one", "0.1", "with bias", "512")
    assert {
        system.preset: tuple(document_systems.choices(system).values()) for system in SYSTEMS
    } == {
        "lecture handout": ("no", "−1e9", "post", "0", "with bias", "5,000"),
        "notebook tutorial": ("yes", "−1e20", "post", "0.2", "without bias", "12"),
        "web tutorial, encoder": web,
        CLASSIFIER: web,
        "repository README": ("yes", "−∞", "post", "0.1", "with bias", "5,000"),
    }
    shown = "\n".join(table.value.to_string() for table in page("repository README").table)
    assert all(value in shown for value in ("−1e20", "post, and a final one", "without bias"))


def test_a_system_says_how_large_it_is_and_is_opened_untrained() -> None:
    for preset, system in BY_PRESET.items():
        at = page(preset)
        count, size = document_systems.system_size(system)
        assert f"{count:,} parameters." in said(at)
        label = at.button(key="open_system").label
        assert label.endswith(f" (makes {size / 1e6:,.0f} MB first)")
        if not preset.startswith("web tutorial"):  # the others are opened below
            continue
        press(at, "open_system")
        folder = document_systems.folder_of(system, folders.systems_root())
        assert at.selectbox(key="model").value == folder.name
        assert not folders.uploads_root().exists(), "it takes no room from uploads"
        assert uploads.uploaded(folder.name) == folder, "a link finds it"
        assert f"{folder.name} is open and reads" in said(at)
        assert at.button(key="open_system").label == "It is open"
        assert document_systems.is_made(system, folders.systems_root()), "it is not made again"
        assert opened_model.opened_from(folder, preset).model.n_parameters == count
        for path in (
            "attention/attention",
            "input/tokens",
            "forward_pass/logit_lens",
            "models/checkpoints",
        ):
            assert not at.switch_page(f"../../pages/{path}.py").run().exception


def test_the_sentence_stays_where_its_words_are_known() -> None:
    """A sentence that a system cannot read is replaced, and the page says why."""
    why = "Not in this model's vocabulary, so read as <unk>: “red”, “fish”. So your sentence"
    for text, read in [
        ("the very good cat", "the very good cat"),
        ("the red fish", document_systems.SENTENCES[CLASSIFIER]),
    ]:
        at = press(page(CLASSIFIER, model="translation", text=text), "open_system")
        assert at.text_input(key="text").value == read
        assert (why in said(at)) is (text != read)


def test_what_is_untrained_writes_little() -> None:
    model = opened_model.open_model("translation")
    assert answers.longest_answer(model) == min(64, model.config.max_len)
    untrained = replace(model, run={"untrained": True}, config=model.config.replace(max_len=500))
    assert answers.longest_answer(untrained) == 12


def test_the_words_are_as_many_as_the_tokens() -> None:
    for preset, system in BY_PRESET.items():
        words = document_systems.tokenizer_for(preset)
        assert words.vocab_size == system.config.vocab_size
        sentence = words.encode(document_systems.SENTENCES[preset])
        assert words.unk_id not in [token.id for token in sentence]


def test_a_system_can_be_trained_on_its_task() -> None:
    """Its choices, a task of this app; at the document's own size it is refused with its count."""
    for system in SYSTEMS:
        task, theirs = TASKS[system.task], PRESETS[system.preset]()
        spec = spec_of(task, {"like": system.preset, "lr": system.lr, "steps": 2, "batch_size": 4})
        for field in CHOSEN:
            assert getattr(spec.model, field) == getattr(theirs, field)
        assert spec.model.vocab_size == task.model.vocab_size
        batches = [task.batch(step, spec.training) for step in range(2)]
        reports = train(Transformer(spec.model), batches.__getitem__, spec.training)
        assert [report.step for report in reports] == [1, 2]
        if theirs.d_model == 512:
            size = {"d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048}
            many = r"has 44,\d{3},\d{3} parameters; at most 20,000,000"
            with pytest.raises(RunError, match=many):
                spec_of(task, {"like": system.preset, **size})


def test_the_paper_is_trained_on_a_task_with_its_ties_its_dropout_and_its_schedule() -> None:
    how = {name: getattr(PAPER_TRAINING, name) for name in ("schedule", "beta2", "eps")}
    spec = spec_of(TASKS["translation"], {"like": "paper", **how})
    assert spec.model.share_embeddings
    assert spec.model.tie_embeddings
    assert not spec.model.has_head_bias
    assert (spec.model.dropout, spec.model.hidden_dropout) == (0.1, 0.0)
    assert {name: getattr(spec.training, name) for name in how} == how
    document = spec_of(TASKS["translation"], {"like": "repository README"}).model
    assert not document.tie_embeddings
    assert document.hidden_dropout == document.dropout == 0.1


def test_the_notebook_tutorial_is_opened_from_the_museum(root: Path) -> None:
    """Its shapes are read in the whole pass, all of its 177 MB made by the click."""
    at = press(page("notebook tutorial"), "open_system")
    assert at.selectbox(key="model").value == "notebook-tutorial"
    assert "notebook-tutorial is open and reads" in said(at)
    assert (root / "notebook-tutorial" / "model.safetensors").stat().st_size > 4 * 44_127_755
    at.text_input(key="text").set_value(TEN).run()
    at.switch_page("../../pages/forward_pass/forward_pass.py").run()
    for stage, shape in SHAPES.items():
        put_persistent(at, "stages", stage=stage)
        (caption,) = [each.value for each in at.caption if "Shape: " in each.value]
        assert shape in caption.partition("Shape: ")[2], stage


def test_a_system_of_93_million_numbers_is_made_opened_and_passed_through(root: Path) -> None:
    """What is read back is what was built, and one sentence goes through it whole."""
    system = BY_PRESET["repository README"]
    opened = opened_model.opened_from(document_systems.make_system(system, root), "readme")
    assert opened.model.n_parameters == 93_322_496
    of = forward_pass.run_text(opened, opened.example)
    assert [token.label for token in of.source] == [*"the black cat sleeps".split(), "</s>"]
    built = Transformer(system.config).eval()
    source = torch.tensor([[token.id for token in of.source]])
    target = torch.tensor([[token.id for token in of.target]])
    with torch.no_grad():
        logits = built(source, target)
    assert logits.shape == (1, len(of.target), 32_000)
    assert [token.id for token in of.written] == logits[0].argmax(-1).tolist()
    torch.testing.assert_close(of.trace["logits"][of.row], logits[0])

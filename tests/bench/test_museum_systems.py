"""The documents' systems in the Museum: how large, opened untrained, and trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer import answers, library
from explorer.museum import systems
from explorer.museum.systems import SYSTEMS
from explorer.runs.asking import Wishes, spec_of
from explorer.runs.run import RunError
from explorer.tasks import TASKS
from models import Transformer
from models.presets import CHOSEN, PRESETS
from models.training import train

SHELL = Path(__file__).resolve().parents[2] / "explorer" / "shell.py"
pytestmark = pytest.mark.usefixtures("small_models")


def inside(**address: str) -> AppTest:
    at = AppTest.from_file(SHELL, default_timeout=120)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run().switch_page("../pages/change/museum.py").run()


def said(at: AppTest) -> str:
    return "\n".join([*(t.value for t in at.text), *(m.value for m in at.markdown)])


def test_the_documents_disagree() -> None:
    """As SEEDS has it, from the configs that are opened and trained."""
    assert {system.preset: tuple(systems.choices(system).values()) for system in SYSTEMS} == {
        "lecture handout": ("no", "−1e9", "post", "0", "with bias", "5,000"),
        "notebook tutorial": ("yes", "−1e20", "post", "0.2", "without bias", "12"),
        "web tutorial, encoder": ("yes", "−∞", "post, and a last one", "0.1", "with bias", "512"),
        "web tutorial, classifier": (
            *("yes", "−∞", "post, and a last one", "0.1", "with bias", "512"),
        ),
        "paper": ("yes", "−∞", "post", "0.1", "with bias", "5,000"),
    }
    shown = "\n".join(t.value.to_string() for t in inside(room="The systems").table)
    assert all(value in shown for value in ("−1e20", "post, and a last one", "without bias"))


def test_a_system_says_how_large_it_is(subtests: pytest.Subtests) -> None:
    for system in SYSTEMS:
        with subtests.test(system=system):
            at = inside(room="The systems", system=system.preset)
            count, size = systems.size(system)
            assert f"{count:,} parameters." in said(at)
            assert at.button(key="open_system").label.endswith(
                f"{size / 1e6:,.0f} MB are made first"
            )


def test_a_system_is_opened_untrained(subtests: pytest.Subtests) -> None:
    for preset in ["web tutorial, encoder", "web tutorial, classifier"]:
        with subtests.test(preset=preset):
            at = inside(room="The systems", system=preset)
            at.button(key="open_system").click().run()
            assert not at.exception
            system = next(each for each in SYSTEMS if each.preset == preset)
            folder = systems.folder_of(system, library.systems_root())
            assert at.selectbox(key="model").value == folder.name
            assert not library.uploads_root().exists(), "it takes no room from uploads"
            assert library.uploaded(folder.name) == folder, "a link finds it"
            assert f"{folder.name} is open and reads" in said(at)
            assert at.button(key="open_system").label == "It is open"
            model = library.opened_from(folder, preset)
            assert model.model.n_parameters == systems.size(system)[0]
            for page in ("look/attention", "look/tokens", "look/lens", "models/checkpoints"):
                assert not at.switch_page(f"../pages/{page}.py").run().exception


def test_the_sentence_stays_where_its_words_are_known(subtests: pytest.Subtests) -> None:
    """A sentence that a system cannot read is replaced, and the page says why."""
    for text, read in [
        ("the very good cat", "the very good cat"),
        ("the red fish", systems.SENTENCES["web tutorial, classifier"]),
    ]:
        with subtests.test(text=text):
            system = "web tutorial, classifier"
            at = inside(model="translation", text=text, room="The systems", system=system)
            at.button(key="open_system").click().run()
            assert at.text_input(key="text").value == read
            why = (
                "Not in this model's vocabulary, so read as <unk>: “red”, “fish”. So your sentence"
            )
            assert (why in said(at)) is (text != read)


def test_what_is_untrained_writes_little() -> None:
    model = library.open_model("translation")
    assert answers.longest_answer(model) == min(64, model.config.max_len)
    untrained = replace(model, run={"untrained": True}, config=model.config.replace(max_len=500))
    assert answers.longest_answer(untrained) == 12


def test_the_words_are_as_many_as_the_tokens(subtests: pytest.Subtests) -> None:
    for preset in [s.preset for s in SYSTEMS]:
        with subtests.test(preset=preset):
            system = next(each for each in SYSTEMS if each.preset == preset)
            words = systems.words_of(preset)
            assert words.vocab_size == system.config.vocab_size
            sentence = words.encode(systems.SENTENCES[preset])
            assert words.unk_id not in [token.id for token in sentence]


def test_a_system_can_be_trained_on_its_task(subtests: pytest.Subtests) -> None:
    """Its choices, a task of this app; at the document's own size it is refused with its count."""
    for system in SYSTEMS:
        with subtests.test(system=system):
            task = TASKS[system.task]
            theirs = PRESETS[system.preset]()
            spec = spec_of(task, Wishes(like=system.preset, lr=system.lr, steps=2, batch_size=4))
            for field in CHOSEN:
                assert getattr(spec.model, field) == getattr(theirs, field)
            assert spec.model.vocab_size == task.model.vocab_size
            model = Transformer(spec.model)
            batches = [task.batch(step, spec.training) for step in range(2)]
            reports = train(model, batches.__getitem__, spec.training)
            assert [report.step for report in reports] == [1, 2]
            if theirs.d_model == 512:
                large = Wishes(like=system.preset, d_model=512, layers=6, heads=8, d_ff=2048)
                with pytest.raises(
                    RunError, match=r"has 44,\d{3},\d{3} parameters; at most 20,000,000"
                ):
                    spec_of(task, large)

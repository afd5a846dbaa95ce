"""The pretrained models and the offer on the start page, without a browser."""

from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app.session import SESSION_KEY
from explorer.catalog import background_downloads
from explorer.catalog.background_downloads import DownloadState
from explorer.catalog.model_download import DownloadProgress
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.views.shared.download_offer import LINE, RequestedDownloads, progress_words
from tests import apps, tiny
from tests.apps import said
from tests.views.drawing import press

SMOLLM2 = PRETRAINED_MODELS["smollm2"]


@pytest.fixture(autouse=True)
def examples(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of models, and a reader who may add some."""
    monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.setenv("EXPLORER_FREE_PATH", "1")
    return tmp_path / "examples"


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, DownloadState]:
    """What is said of each model; begun by a click, they are asking where it is."""
    found: dict[str, DownloadState] = {}

    def state_of(model: PretrainedModel) -> DownloadState:
        return found.get(model.name, DownloadState("absent"))

    def start(model: PretrainedModel) -> None:
        found[model.name] = DownloadState("running", DownloadProgress("asking", 0, model.download))

    monkeypatch.setattr(background_downloads, "state_of", state_of)
    monkeypatch.setattr(background_downloads, "start", start)
    gone = DownloadState("absent")
    monkeypatch.setattr(background_downloads, "cancel", lambda of: found.update({of.name: gone}))
    return found


page = partial(apps.page, "models/checkpoints")


def offer(model: str = "letters") -> AppTest:
    """The offer alone, beside this model."""

    def script() -> None:
        from explorer.app.context import page_context
        from explorer.views.shared.download_offer import draw_offer

        draw_offer(page_context())

    at = AppTest.from_function(script, default_timeout=60)
    at.session_state["model"] = model
    return apps.run(at)


def put(folder: Path) -> None:
    """A tiny model in the place of a pretrained one."""
    folder.parent.mkdir(exist_ok=True)
    tiny.export_gpt2(folder)


def buttons(at: AppTest) -> dict[str, str]:
    return {str(button.key): button.label for button in at.button}


def test_a_lesson_offers_the_model_that_is_not_here() -> None:
    for lesson, is_offered in (("an_indirect_object", True), ("attention_sinks", False)):
        at = apps.page("attention/attention", lesson=lesson, lesson_step="1")
        assert ("get_offer_of_lesson" in buttons(at)) is is_offered


def test_every_pretrained_model_has_size_licence_and_use(states: dict[str, DownloadState]) -> None:
    at = page()
    for model in PRETRAINED_MODELS.values():
        assert f"get_{model.name}" in buttons(at)
        assert model.good_for[1:20] in said(at).replace("\\", "").replace("\u2060", "")
        assert model.licence in said(at)
    assert "93 MB, Apache 2.0" in said(at)


def test_a_click_begins_shows_how_far_it_is_and_ends_it(states: dict[str, DownloadState]) -> None:
    at = press(page(), "get_gpt2")
    assert [state.kind for state in states.values()] == ["running"]
    assert "get_gpt2" not in buttons(at)
    progress = DownloadProgress("fetching", 110_000_000, 551_000_000, 9e6)
    states["gpt2"] = fetched = DownloadState("running", progress)
    again = page()
    assert "cancel_list_gpt2" in buttons(again)
    assert progress_words(fetched) == "110 MB of 551 MB, 9.00 MB a second, 49 s left"
    for seconds, left in {0.2: "1 s", 59.4: "59 s", 3_599: "1 h 0 min", 7_300: "2 h 2 min"}.items():
        state = DownloadState("running", DownloadProgress("fetching", 0, round(seconds * 1e6), 1e6))
        assert progress_words(state).endswith(f", {left} left")
    press(again, "cancel_list_gpt2")
    assert [state.kind for state in states.values()] == ["absent"]
    states["gpt2"] = DownloadState("absent", left=110_000_000, fault="The hub cannot be reached.")
    at = page()
    assert buttons(at)["get_gpt2"] == "Resume"
    assert "The hub cannot be reached." in said(at)
    states["gpt2"] = DownloadState("running", is_ours=False)
    offered = buttons(page())
    assert not {"get_gpt2", "cancel_list_gpt2"} & {*offered}, "another process downloads it"


def test_what_was_waited_for_opens_and_what_is_there_can_be_opened(examples: Path) -> None:
    put(examples / "gpt2")
    at = page(model="letters")
    assert buttons(at)["open_pretrained_gpt2"] == "Open"
    at = press(at, "open_pretrained_gpt2")
    assert at.selectbox(key="model").value == "gpt2"
    assert "**GPT\\" in said(at) or "GPT-2" in said(at)
    at = page(model="letters")
    at.session_state[SESSION_KEY].state(RequestedDownloads).add("gpt2")
    apps.run(at)
    assert at.selectbox(key="model").value == "gpt2"
    assert at.session_state[SESSION_KEY].state(RequestedDownloads) == set()


def test_only_who_runs_the_app_can_add_models(
    examples: Path, states: dict[str, DownloadState], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page()
    monkeypatch.setenv("EXPLORER_FREE_PATH", "0")
    press(at, "get_gpt2")
    assert states == {}, "a button that was drawn before starts nothing"
    at = page()
    assert not any(key.startswith("get_") for key in buttons(at))
    assert "python -m explorer get smollm2" in said(at)
    assert "downloaded when you ask" not in said(at)
    assert buttons(offer()) == {}


def test_the_offer_is_a_line_and_a_button(examples: Path, states: dict[str, DownloadState]) -> None:
    at = offer()
    label = "Get SmolLM2, a pretrained language model (93 MB)"
    assert buttons(at) == {"get_offer": label}
    assert len(at.markdown) == 1
    at = press(at, "get_offer")
    assert set(buttons(at)) == {"cancel_offer_smollm2"}
    states["smollm2"] = DownloadState("absent", left=41_000_000, fault="It broke.")
    at = offer()
    assert buttons(at)["get_offer"].endswith("(41 of 93 MB)")
    assert "It broke." in said(at)
    states["smollm2"] = DownloadState("there")
    at = offer()
    assert not at.button
    assert not at.markdown


def test_small_models_learned_one_task_and_a_model_that_was_asked_for_has_no_offer(
    examples: Path, states: dict[str, DownloadState], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(examples / "gpt2")
    at = offer("gpt2")
    assert set(buttons(at)) == {"get_offer"}
    assert not at.markdown
    assert said(offer("letters")) == LINE
    monkeypatch.setenv("EXPLORER_MODELS", str(examples / "gpt2"))
    assert buttons(offer()) == {}


def test_the_pretrained_one_is_met_first(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(SMOLLM2.folder)
    assert apps.page("attention/attention").selectbox(key="model").value == "smollm2"
    asked = apps.page("attention/attention", text="the cat")
    assert asked.selectbox(key="model").value == "translation"
    assert asked.query_params["model"] == "translation"
    at = apps.page("attention/attention", model="letters")
    assert at.selectbox(key="model").value == "letters"
    apps.run(at.selectbox(key="model").set_value("translation"))
    assert at.selectbox(key="model").value == "translation"
    assert at.selectbox(key="model").options[:2] == ["smollm2", "Translation"]
    assert at.selectbox(key="model").options[-1] == "More models"
    apps.run(at.selectbox(key="model").set_value("More models"))
    assert at.selectbox(key="model").value == "translation"
    wrong = apps.page("attention/attention", model="nothing")
    assert "There is no model “nothing” here; showing translation." in said(wrong)
    monkeypatch.setenv("EXPLORER_MODELS", str(examples / "smollm2"))
    assert apps.page("attention/attention").selectbox(key="model").value == "smollm2"

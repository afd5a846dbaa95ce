"""A chat on the page Generation: rendered, sent as the sentence, and read as a prompt."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app.address_parameters import TEXT_LIMIT
from explorer.text import byte_tokenizer
from explorer.text.checked_text import LARGEST_TEMPLATE
from tests import apps, tiny
from tests.apps import said, views
from tests.views.drawing import pasted, press, put_state, run, sent

RENDERED = "<|im_start|>user\nthe cat<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One model that chats."""
    tiny.chat_gpt2(tmp_path / "models" / "chat")
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def page(path: str = "generation/generation", **address: str) -> AppTest:
    return apps.page(path, **{"model": "chat", "text": "the cat", **address})


def specials(at: AppTest, key: str) -> list[str]:
    header, _ = sent(at, key)
    return [header["labels"][place] for place in header["muted"]]


def shown(at: AppTest) -> str:
    """The rendered prompt, of which the block shows no line end behind it."""
    return str(at.code[-1].value)


def text_of(at: AppTest) -> str:
    return str(at.session_state["text"])


def test_messages_are_rendered_and_sent_as_the_sentence_with_their_special_tokens(
    models: Path,
) -> None:
    at = page()
    assert "chat_tokens" not in views(at), "nothing is rendered before it is asked for"
    put_state(at, chat=True)
    assert shown(at) == RENDERED.strip()
    marks = ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
    assert specials(at, "chat_tokens") == marks
    press(at, "chat_send")
    assert text_of(at) == RENDERED
    assert "".join(at.query_params["special"]) == "true"
    assert specials(at, "decoded") == marks
    assert "The sentence is this prompt now" in said(at)
    assert shown(at) == RENDERED.strip(), "the prompt is not a message of its own"
    again = page("input/tokens", text=RENDERED, special="true")
    assert specials(again, "tokens_read") == marks
    made, _ = run(pasted(again), models)
    assert made["ids"] == sent(again, "tokens_read")[0]["ids"], "the lines read them too"
    assert "Steps are shown of plain text" in said(again)
    again.text_input(key="text").set_value("the <|im_end|>").run()
    assert specials(again, "tokens_read") == []
    assert "special" not in again.query_params


@pytest.mark.usefixtures("models")
def test_special_tokens_that_somebody_types_are_letters_until_the_switch_reads_them() -> None:
    at = page("input/tokens", text="the cat")
    assert "Special tokens" not in said(at)
    at.text_input(key="text").set_value("the <|im_end|> cat <|im_end|>").run()
    words = "Special tokens in the sentence are read {}: “<|im_end|>”."
    assert words.format("as letters") in said(at)
    at.toggle(key="reads_special").set_value(True).run()
    assert specials(at, "tokens_read") == ["<|im_end|>"] * 2
    assert "".join(at.query_params["special"]) == "true"
    assert words.format("as such, and none is added around it") in said(at)
    at.toggle(key="reads_special").set_value(False).run()
    assert specials(at, "tokens_read") == []


def test_a_tokenizer_of_ours_reads_special_tokens_on_request() -> None:
    tokenizer = byte_tokenizer("a cat", 300)
    assert tokenizer.bos_id not in tokenizer.ids("a<s>")[1:]
    prompt = tokenizer.reading_prompts().encode("a<s>")
    assert [(token.id, token.start, token.end) for token in prompt][-1] == (tokenizer.bos_id, 1, 4)
    assert prompt[-1].special


@pytest.mark.usefixtures("models")
def test_a_system_message_and_the_plain_text() -> None:
    at = put_state(page(), chat=True)
    at.text_area(key="chat_system").set_value("be short")
    at.toggle(key="chat_answer").set_value(False).run()
    told = "<|im_start|>system\nbe short<|im_end|>\n<|im_start|>user\nthe cat<|im_end|>"
    assert shown(at) == told
    at.text_area(key="chat_user").set_value("the hat").run()
    press(at, "chat_send")
    assert text_of(at) == f"{told.replace('cat', 'hat')}\n"
    press(at, "chat_plain")
    assert text_of(at) == "the hat"
    assert "special" not in at.query_params
    at.text_area(key="chat_user").set_value(" ").run()
    assert "There is no message yet: type one." in said(at)
    at.text_area(key="chat_user").set_value("a " * (TEXT_LIMIT // 2)).run()
    assert "a sentence has at most 2,000: shorten the messages." in said(at)
    assert at.button(key="chat_send").disabled


def test_a_prompt_is_read_as_such_by_the_other_model_and_by_the_diagnostics(models: Path) -> None:
    tiny.chat_gpt2(models / "other")
    asked = {"with": "Another model", "other_model": "other", "special": "true"}
    at = page("experiments/compare", text=RENDERED, **asked)
    first, second = (sent(at, key)[0]["rows"] for key in ("map_first", "map_second"))
    assert second == first
    long = "<|im_end|>" * 60
    asked = {"show": "Diagnostics", "text": long, "special": "true"}
    assert "Attention not checked" not in said(page("models/checkpoints", **asked))
    at = page("experiments/compare", text=long, special="true", **{"with": "Another model"})
    assert "No other model reads the whole text" not in said(at)


def test_a_failed_template_leaves_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.chat_gpt2(tmp_path / "models" / "chat", "{{ raise_exception('**No** [x](y)') }}")
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path / "models"))
    at = put_state(page(), chat=True)
    (sentence,) = (each.value for each in at.text if "chat template" in each.value)
    assert sentence == (
        "The chat template of this model cannot be used: it refuses these messages: "
        "**No** [x](y); send the plain text instead."
    )
    assert "chat_tokens" not in views(at)
    assert [str(b.key) for b in at.button if "chat" in str(b.key)] == ["chat_plain"]
    (tmp_path / "models" / "chat" / "chat_template.jinja").write_text("{{ messages|length }}")
    again = put_state(page(model="chat"), chat=True)
    assert shown(again) == "1"


def test_a_template_that_is_too_long_or_cannot_be_read_is_not_shown(models: Path) -> None:
    template = models / "chat" / "chat_template.jinja"
    template.write_text("x" * (LARGEST_TEMPLATE + 1))
    at = put_state(page(), chat=True)
    assert "has 200,001 characters, and at most 200,000 are read: type a text instead." in said(at)
    assert not at.code
    template.unlink()
    template.mkdir()
    at = page()
    assert "chat has no readable chat_template.jinja." in said(at)
    assert str(models) not in said(at)


@pytest.mark.usefixtures("small_models")
def test_a_model_without_a_template_has_no_panel() -> None:
    at = apps.page("generation/generation", model="letters")
    assert "chat" not in at.session_state

"""Tokens and training a tokenizer by hand: step by step, on one's own file, of others' folders."""

import re

from playwright.sync_api import FilePayload, Locator, expect

from explorer.inference import trained_tokenizers
from explorer.text.bpe_training import BPE
from explorer.text.plain_tokenizer import tokenizer_after
from tests.browser.visiting import Visitor


def chips(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator(".chip")


def test_merges_are_trained_step_by_step_and_follow_to_the_tokens(visitor: Visitor) -> None:
    page = visitor.open("/tokenizer_training?model=translation&learn_rules=50")
    found = trained_tokenizers.trained_merges(
        trained_tokenizers.shipped_text(trained_tokenizers.TRANSLATION), 50, BPE
    )
    visitor.drawn("learn_step_steps")
    visitor.widget("learn_step_steps").get_by_role("button", name="Next").click()
    visitor.asks(learn_step="1")
    page.get_by_role("heading", level=1).click()
    for press, step in (("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(press)
        visitor.asks(learn_step=str(step))
        visitor.says(f"Merge {step}: ")
        visitor.rest()
    visitor.type("a red bird sings")
    labels = [token.label for token in tokenizer_after(found, 1).encode("a red bird sings")]
    expect(chips(visitor, "learn_sentence")).to_have_text(labels)
    visitor.follow("Tokens")
    page.get_by_text("Compare with other tokenizers").click()
    visitor.says(re.compile(f"Trained here: {BPE} · "))
    visitor.asks(learn_rules="50")


def test_a_file_of_ones_own_is_read_or_refused(visitor: Visitor) -> None:
    page = visitor.open("/tokenizer_training?learn_from=A+text+file")
    for name, content, said in (
        ("a.txt", b"\xff\xfe\x00", "The file is not text in UTF-8"),
        ("b.txt", b"ab cd" * 1_000_000, "File must be 4.0MB or smaller."),
        ("b.txt", b"ab cd" * 400_000, "2,000,000 characters; at most 1,000,000 characters fit"),
        ("c.txt", b"zzz zz", "Next, "),
    ):
        payload = FilePayload(name=name, mimeType="text/plain", buffer=content)
        page.locator("input[type=file]").set_input_files(payload)
        visitor.says(said)


def test_an_emoji_of_a_published_tokenizer_is_its_bytes(visitor: Visitor) -> None:
    visitor.open("/tokens?model=long-gpt2&text=to+be")
    visitor.type("to é🙂")
    visitor.asks(text="to é🙂")
    said = visitor.widget("tokens_read").locator(".sentence")
    pieces = chips(visitor, "tokens_read").filter(has_text=re.compile("^<0x"))
    expect(pieces.nth(3)).to_be_visible()
    chips(visitor, "tokens_read").filter(has_text=re.compile("^(to|t)$")).first.hover()
    expect(said).to_contain_text(re.compile(r"is token \d+ of \d+ · id \d+ · characters? 0"))
    expect(said).to_contain_text("bytes 74")
    pieces.last.hover()
    expect(said).to_contain_text("bytes f0 9f 99 82")
    expect(visitor.widget("tokens_read").locator(".text .on")).to_have_text("🙂")

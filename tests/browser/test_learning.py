"""Tokens and learning a tokenizer by hand: step by step, of one's own words, of others' folders."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import FilePayload, Locator, expect

from explorer import learnt, library
from explorer.text import open_published, steps
from explorer.text.learning import BPE, WORDPIECE
from explorer.text.made_here import MadeHere, after, of_pieces
from explorer.text.unigram import UNIGRAM
from tests.browser.visiting import Visitor

CLICK_ON = """async clicks => {
  for (let click = 0; click < clicks; click++) {
    const buttons = [...document.querySelectorAll('[data-testid="stMain"] button')];
    buttons.find((button) => button.innerText.trim().startsWith("Next"))?.click();
    await new Promise(requestAnimationFrame);
  }
}"""
SENTENCE = "the black cat does not see the white house"
TEXT = learnt.shipped(learnt.TRANSLATION)


def chips(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator(".chip")


def reads(visitor: Visitor, key: str, tokenizer: MadeHere, text: str) -> None:
    """Wait until these chips are what the tokenizer makes of the text."""
    labels = [token.label for token in tokenizer.encode(text)]
    expect(chips(visitor, key)).to_have_text(labels)


def test_merges_are_learnt_step_by_step_and_follow_to_the_tokens(visitor: Visitor) -> None:
    page = visitor.open("/learning?model=translation&learn_rules=50")
    found = learnt.rules(TEXT, 50, BPE)
    reads(visitor, "learn_sentence", after(found, 0), SENTENCE)
    page.get_by_role("button", name="Next").first.click()
    visitor.asks(learn_step="1")
    page.get_by_role("heading", level=1).click()
    for press, step in (("ArrowRight", "2"), ("ArrowLeft", "1")):
        page.keyboard.press(press)
        visitor.asks(learn_step=step)
        visitor.says(f"Rule {step}: ")
        visitor.rest()
    visitor.open("/learning?model=translation&learn_rules=50&learn_step=37")
    visitor.type("a red bird sings")
    reads(visitor, "learn_sentence", after(found, 37), "a red bird sings")
    page.reload()
    visitor.rest()
    visitor.says("Rule 37: ")
    reads(visitor, "learn_sentence", after(found, 37), "a red bird sings")
    visitor.follow("Tokens")
    page.get_by_text("The same sentence under other tokenizers").click()
    whole = learnt.tokenizer(TEXT, BPE, 50)
    count = len(whole.encode("a red bird sings"))
    visitor.says(f"Learnt here: {BPE} · {count} tokens of {whole.vocab_size}")
    visitor.asks(learn_rules="50")


def test_words_and_files_of_ones_own_are_learnt_from_or_refused(visitor: Visitor) -> None:
    own = {"learn_how": WORDPIECE, "learn_from": "Words of your own"}
    page = visitor.open("/learning?" + urlencode(own))
    visitor.says("There is no text to learn from yet")
    page.get_by_label("Your words").fill("zzz zz")
    page.get_by_label("Your words").blur()
    visitor.asks(learn_own="zzz zz")
    visitor.says("Next, z and ##z are merged")
    for name, content, said in (
        ("a.txt", b"\xff\xfe\x00", "The file is not text in UTF-8"),
        ("b.txt", b"ab cd" * 1_000_000, "5,000,000 bytes; at most 1,000,000 characters fit"),
    ):
        visitor.open("/learning?" + urlencode({"learn_from": "A file of your own"}))
        payload = FilePayload(name=name, mimeType="text/plain", buffer=content)
        page.locator("input[type=file]").set_input_files(payload)
        visitor.says(said)


def test_a_unigram_loses_pieces(visitor: Visitor) -> None:
    asked = {"model": "translation", "learn_how": UNIGRAM, "learn_rules": 50}
    page = visitor.open("/learning?" + urlencode(asked))
    sizes = learnt.sizes(TEXT, 50)
    reads(visitor, "learn_sentence", of_pieces(learnt.pieces(TEXT, sizes[0])), SENTENCE)
    page.get_by_role("button", name="Next").first.click()
    visitor.asks(learn_size="1")
    reads(visitor, "learn_sentence", of_pieces(learnt.pieces(TEXT, sizes[1])), SENTENCE)


def test_one_sentence_under_several_tokenizers(visitor: Visitor) -> None:
    text = "The cat, the ☃ Dog"
    asked = {"model": "bert", "text": text, "beside": ["shakespeare", f"Learnt here: {WORDPIECE}"]}
    page = visitor.open("/tokens?" + urlencode(asked, doseq=True))
    ours = library.open_model("shakespeare").tokenizer
    visitor.says(f"shakespeare · {len(ours.encode(text))} tokens of {ours.vocab_size:,}")
    reads(visitor, "beside_2", learnt.tokenizer(TEXT, WORDPIECE, 100), text)
    expect(page.get_by_text("The numbers give back exactly this text.")).to_have_count(1)
    page.reload()
    visitor.rest()
    expect(chips(visitor, "beside_1")).to_have_text([each.label for each in ours.encode(text)])


def test_the_tokens_of_a_published_tokenizer_are_read_and_merged_step_by_step(
    visitor: Visitor, long_gpt2: Path
) -> None:
    """An emoji is its bytes; every step on the screen is one that the folder's tokenizer gives."""
    page = visitor.open("/tokens?model=long-gpt2&text=to+be")
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
    taken = steps(open_published(long_gpt2, "gpt2"), "the cat sat")
    merge = next(place for place, step in enumerate(taken) if step.rank is not None)
    visitor.open(f"/tokens?model=long-gpt2&text=the+cat+sat&step={merge}")
    for step in taken[merge : merge + 2]:
        expect(page.get_by_text(step.action, exact=True)).to_be_visible()
        expect(chips(visitor, "tokens_step")).to_have_text([p.label for p in step.pieces])
        page.get_by_role("button", name="Next").first.click()


def test_steps_quicker_than_the_app_answers_lose_nothing(visitor: Visitor) -> None:
    page = visitor.open("/learning?model=translation")
    expect(page.get_by_role("button", name="Next").first).to_be_enabled()
    page.evaluate(CLICK_ON, 12)
    visitor.rest()
    visitor.says(re.compile(r"^Rule \d+: "))
    connected = "data-test-connection-state", "CONNECTED"
    expect(page.get_by_test_id("stApp")).to_have_attribute(*connected)

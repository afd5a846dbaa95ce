"""Learning a tokenizer by hand: every number on screen is counted again here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import FilePayload, Locator, expect

from explorer import learnt, library
from explorer.text import open_published, steps
from explorer.text.learning import BPE, WORDPIECE, Learnt
from explorer.text.made_here import MadeHere, after, label_of, of_pieces
from explorer.text.there_and_back import lost
from explorer.text.unigram import UNIGRAM
from tests.browser.visiting import Visitor
from tests.served import Server

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


def shows(visitor: Visitor, found: Learnt, step: int) -> None:
    """Wait until the page shows this step in numbers."""
    counted, first = found.after(step), found.after(step).pairs[0]
    left, right = (label_of(found.tokens[n], found.way) for n in (first.left, first.right))
    size = len(found.vocabulary(step))
    for said in (
        f"{size:,} in all. The text is {counted.tokens:,} tokens long.",
        f"Next, {left} and {right} are merged: they stand together {first.count:,} times",
        f"of {counted.kinds:,}",
    ):
        expect(visitor.page.get_by_text(said).first).to_be_visible()
    if step:
        made = label_of(found.tokens[found.rules[step - 1][2]], found.way)
        expect(visitor.page.get_by_text(f"Rule {step}: ")).to_contain_text(f"became {made}.")


def test_tokenizer_merge_stepper_joined_to_a_model(visitor: Visitor) -> None:
    page = visitor.open("/learning?model=translation&learn_rules=50")
    found = learnt.rules(TEXT, 50, BPE)
    shows(visitor, found, 0)
    reads(visitor, "learn_sentence", after(found, 0), SENTENCE)
    page.get_by_role("button", name="Next").first.click()
    visitor.asks(learn_step="1")
    shows(visitor, found, 1)
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("ArrowRight")
    visitor.asks(learn_step="2")
    shows(visitor, found, 2)
    page.keyboard.press("ArrowLeft")
    visitor.asks(learn_step="1")
    shows(visitor, found, 1)
    visitor.open("/learning?model=translation&learn_rules=50&learn_step=37")
    shows(visitor, found, 37)
    reads(visitor, "learn_sentence", after(found, 37), SENTENCE)
    visitor.type("a red bird sings")
    reads(visitor, "learn_sentence", after(found, 37), "a red bird sings")
    page.reload()
    visitor.rest()
    shows(visitor, found, 37)
    visitor.follow("Tokens")
    page.get_by_text("The same sentence under other tokenizers").click()
    whole = learnt.tokenizer(TEXT, BPE, 50)
    count = len(whole.encode("a red bird sings"))
    said = f"Learnt here: {BPE} · {count} tokens of {whole.vocab_size}"
    expect(page.get_by_text(said)).to_be_visible()
    visitor.asks(learn_rules="50")


def test_the_tie_rule_and_the_textbooks_score_of_wordpiece(visitor: Visitor) -> None:
    own = "ab ab ab ac ac ac xy"
    asked = {"learn_how": WORDPIECE, "learn_from": "Words of your own", "learn_own": own}
    page = visitor.open("/learning?" + urlencode(asked))
    found = learnt.rules(own, 100, WORDPIECE)
    first, best = found.after(0).pairs[0], found.after(0).scored[0]
    assert found.after(0).equals == 2
    assert (first.left, first.right) == found.rules[0][:2]
    expect(page.get_by_text(f"here {first.left} and {first.right}.")).to_be_visible()
    textbook = f"x and ##y, found together once (score {best.score:.3g}, against {first.score:.3g})"
    expect(page.get_by_text(textbook)).to_be_visible()
    visitor.open("/learning?" + urlencode(asked | {"learn_step": len(found.rules)}))
    expect(page.get_by_text("every word is one token, so learning ends")).to_be_visible()
    page.get_by_label("Your words").fill("zzz zz")
    page.get_by_label("Your words").blur()
    visitor.asks(learn_own="zzz zz")
    expect(page.get_by_text("“Rules”")).to_have_count(0)
    shows(visitor, learnt.rules("zzz zz", 100, WORDPIECE), 0)


def test_a_unigram_loses_pieces_and_cuts_by_their_probabilities(visitor: Visitor) -> None:
    page = visitor.open(
        "/learning?" + urlencode({"model": "translation", "learn_how": UNIGRAM, "learn_rules": 50})
    )
    sizes = learnt.sizes(TEXT, 50)
    reads(visitor, "learn_sentence", of_pieces(learnt.pieces(TEXT, sizes[0])), SENTENCE)
    page.get_by_role("button", name="Next").first.click()
    visitor.asks(learn_size="1")
    smaller = learnt.pieces(TEXT, sizes[1])
    expect(page.get_by_text(f"{len(smaller.pieces)} pieces, the unknown one")).to_be_visible()
    reads(visitor, "learn_sentence", of_pieces(smaller), SENTENCE)


def test_one_sentence_under_several_tokenizers_and_back(visitor: Visitor) -> None:
    text = "The cat, the ☃ Dog"
    asked = {"model": "bert", "text": text, "beside": ["shakespeare", f"Learnt here: {WORDPIECE}"]}
    page = visitor.open("/tokens?" + urlencode(asked, doseq=True))
    ours = library.open_model("shakespeare").tokenizer
    count = len(ours.encode(text))
    expect(page.get_by_text(f"shakespeare · {count} tokens of {ours.vocab_size:,}")).to_be_visible()
    expect(chips(visitor, "beside_1")).to_have_text([each.label for each in ours.encode(text)])
    pieces = learnt.tokenizer(TEXT, WORDPIECE, 100)
    reads(visitor, "beside_2", pieces, text)
    said = lost(text, pieces.decode([token.id for token in pieces.encode(text)]))
    expect(page.get_by_text(said).last).to_be_visible()
    expect(page.get_by_text("The numbers give back exactly this text.")).to_have_count(1)
    expect(page.get_by_text("bert · ")).to_be_visible()
    page.reload()
    visitor.rest()
    expect(chips(visitor, "beside_1")).to_have_text([each.label for each in ours.encode(text)])


def test_bad_choices_in_the_address_are_said(visitor: Visitor) -> None:
    page = visitor.open("/learning?learn_step=999&learn_how=magic&learn_from=nowhere")
    for said in (
        "“Rules” goes from 0 to 95, not “999”; it is 0.",
        "“How” has no “magic” here",
        "“Learn from” has no “nowhere” here",
    ):
        expect(page.get_by_text(said)).to_be_visible()
    visitor.open("/tokens?beside=nothing")
    expect(page.get_by_text("“Beside it” has no “nothing” here.")).to_be_visible()
    visitor.open("/learning?" + urlencode({"learn_from": "Words of your own"}))
    expect(page.get_by_text("There is no text to learn from yet")).to_be_visible()
    visitor.open("/learning?" + urlencode({"learn_from": "A file of your own"}))
    files = page.locator("input[type=file]")
    files.set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"\xff\xfe\x00"})
    expect(page.get_by_text("The file is not text in UTF-8")).to_be_visible()
    long = FilePayload(name="b.txt", mimeType="text/plain", buffer=b"ab cd" * 1_000_000)
    visitor.open("/learning?" + urlencode({"learn_from": "A file of your own"}))
    page.locator("input[type=file]").set_input_files(long)
    expect(page.get_by_text("5,000,000 bytes; at most 1,000,000 characters fit")).to_be_visible()


def test_the_tokens_of_a_published_tokenizer_are_read_and_merged_step_by_step(
    visitor: Visitor, server: Server
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
    (folder,) = Path(server.extra["EXPLORER_MODELS"].split(os.pathsep)[1]).glob("long-gpt2")
    taken = steps(open_published(folder, "gpt2"), "the cat sat")
    merge = next(place for place, step in enumerate(taken) if step.rank is not None)
    page = visitor.open(f"/tokens?model=long-gpt2&text=the+cat+sat&step={merge}")
    for step in taken[merge : merge + 2]:
        expect(page.get_by_text(step.action, exact=True)).to_be_visible()
        expect(chips(visitor, "tokens_step")).to_have_text([p.label for p in step.pieces])
        page.get_by_role("button", name="Next").first.click()


def test_quick_steps_end_where_they_lead(visitor: Visitor) -> None:
    """Clicks that come while the last one is being answered; no part of the page is lost."""
    page = visitor.open("/learning?model=translation")
    expect(page.get_by_role("button", name="Next").first).to_be_enabled()
    page.evaluate(CLICK_ON, 12)
    visitor.rest()
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED"
    )

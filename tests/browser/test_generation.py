"""Generation by hand: sampled, forced, branched, undone, searched; tokenizers that are trained."""

import re

from playwright.sync_api import FilePayload, Locator, expect

from explorer.inference import trained_tokenizers
from explorer.text.bpe_training import BPE
from explorer.text.plain_tokenizer import tokenizer_after
from tests.browser.visiting import Visitor
from tests.served import wait_until

GENERATION = "/generation?model=translation&text=the+black+cat+sleeps&length=5"


def nodes(visitor: Visitor, key: str) -> Locator:
    visitor.drawn(key)
    return visitor.widget(key).locator(".node")


def chips(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator(".chip")


def test_a_token_is_sampled_another_forced_and_a_branch_undone_and_redone(visitor: Visitor) -> None:
    page = visitor.open(GENERATION)
    tree = nodes(visitor, "branches_tree")
    visitor.widget("draw").get_by_role("button").click()
    wait_until(lambda: "branches" in visitor.query(), "what was sampled in the address")
    drawn = visitor.query()["branches"]
    expect(tree).to_have_count(2)
    tree.first.click()
    visitor.asks(written="0")
    visitor.rest()
    visitor.widget("stages").get_by_role("button").nth(3).click()
    expect(tree).to_have_count(3)
    expect(visitor.widget("branches_tree").locator(".node.forced")).to_have_count(1)
    wait_until(lambda: f"{drawn}.0f" in visitor.query()["branches"], "the branch in the address")
    both = visitor.query()["branches"]
    for name, count in (("Undo", 2), ("Redo", 3)):
        page.get_by_role("button", name=name).click()
        expect(tree).to_have_count(count)
    visitor.asks(branches=both)
    visitor.rest()
    page.get_by_role("radio", name="Beam search").click()
    nodes(visitor, "beam_tree").first.click()
    expect(page.get_by_role("radio", name="Token by token")).to_be_checked()
    wait_until(lambda: visitor.query()["branches"] != both, "the beam's token in the address")


def test_a_text_grows_with_its_maps_until_it_ends(visitor: Visitor) -> None:
    page = visitor.open(f"{GENERATION}&part=Cross")
    before = visitor.picture("decoded_head")
    visitor.widget("draw").get_by_role("button").click()
    visitor.changed("decoded_head", before)
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_text("Stopped: </s> ends the text.")).to_be_visible()
    expect(visitor.widget("draw").get_by_role("button")).to_be_disabled()

    greedy = "/generation?model=shakespeare&text=To+be&length=3&temperature=0.0"
    visitor.open(greedy)
    page.get_by_role("button", name="Generate").click()
    wait_until(lambda: "branches" in visitor.query(), "the branch in the address", 30)
    visitor.open(f"{greedy}&branches={visitor.query()['branches']}&written=0")
    seen = [visitor.picture("decoded_head")]
    visitor.drawn("written_steps")
    for step in range(1, 3):
        page.keyboard.press("ArrowRight")
        visitor.asks(written=str(step))
        wait_until(lambda: visitor.picture("decoded_head") not in seen, "a larger map", 30)
        seen.append(visitor.picture("decoded_head"))
    page.get_by_role("button", name="Back").click()
    visitor.shows("decoded_head", seen[-2])
    chips(visitor, "decoded").last.click()
    expect(page.get_by_role("slider", name="Token", exact=True)).to_have_value("3")
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_enabled()
    page.keyboard.press("ArrowRight")  # behind the last it samples one more
    expect(page.locator(".where")).to_have_text("Token: 4 of 4")


def test_a_chat_prompt_is_the_text_with_line_ends_and_special_tokens(visitor: Visitor) -> None:
    page = visitor.open("/generation?model=long-gpt2&text=the+cat&temperature=0.0")
    page.get_by_text("Chat prompt").click()
    expect(chips(visitor, "chat_tokens").last).to_have_text("↵")
    sent = chips(visitor, "chat_tokens").all_inner_texts()
    visitor.press("Use as the sentence")
    visitor.asks(text="the cat<|endoftext|>\n", special="true")
    expect(chips(visitor, "decoded")).to_have_text(sent)
    visitor.follow("Tokens")
    visitor.asks(special="true")
    expect(chips(visitor, "tokens_read")).to_have_text(sent)
    visitor.type("the cat<|endoftext|>")
    expect(visitor.widget("tokens_read").locator(".muted")).to_have_count(0)
    assert "special" not in visitor.query()


def test_a_tokenizer_is_trained_step_by_step_and_on_a_file_of_ones_own(visitor: Visitor) -> None:
    page = visitor.open("/tokenizer_training?model=translation&learn_rules=50&learn_step=0")
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

    visitor.open("/tokenizer_training?learn_from=A+text+file")
    large = ("b.txt", b"ab cd" * 1_000_000, "File must be 4.0MB or smaller.")
    for name, content, said in (large, ("c.txt", b"zzz zz", "Next, ")):
        payload = FilePayload(name=name, mimeType="text/plain", buffer=content)
        page.locator("input[type=file]").set_input_files(payload)
        visitor.says(said)

"""Decoding and Writing by hand: force, branch, undo, beams, teacher forcing; a text that grows."""

from __future__ import annotations

import torch
from playwright.sync_api import Locator, expect

from explorer import library
from explorer.analysis.forcing import forced
from explorer.decoding import stand, start_of
from explorer.numbers import three
from explorer.passing import ids_of
from explorer.right_answer import target_of
from models.beam_search import beam_search
from models.generation import Sampling, choose_from
from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXTS = {"translation": "the black cat sleeps", "shakespeare": "To be"}


READ = """view => [...view.querySelectorAll("tbody tr")].map(row => [
  row.querySelector(".name").textContent,
  ...[...row.querySelectorAll("td")].map(cell => cell.textContent)])"""


def address(name: str, **choices: str) -> str:
    asked = {"model": name, "text": TEXTS[name], **choices}
    return "/decoding?" + "&".join(f"{key}={value}" for key, value in asked.items())


def rows(visitor: Visitor, key: str) -> dict[str, list[str]]:
    """What a table says, its first row of each name."""
    visitor.drawn(key)
    found: list[list[str]] = visitor.widget(key).locator(".board").evaluate(READ)
    return {name: cells for name, *cells in reversed(found)}


def nodes(visitor: Visitor, key: str) -> Locator:
    visitor.drawn(key)
    return visitor.widget(key).locator(".node")


def test_temperature_top_k_top_p_with_live_bars(visitor: Visitor) -> None:
    name = "shakespeare"
    page = visitor.open(address(name, temperature="0.55", top_p="0.72"))
    page.get_by_role("slider", name="Temperature").press("ArrowLeft")
    visitor.asks(temperature="0.5")
    visitor.fill("Top-k", "4")
    visitor.asks(top_k="4")
    for _ in range(2):
        page.get_by_role("slider", name="Top-p").press("ArrowLeft")
    visitor.asks(top_p="0.7")
    visitor.rest()
    model = library.open_model(name)
    logits = stand(model, TEXTS[name], ()).logits
    cool = choose_from(logits[None], Sampling(0.5))[0]
    final = choose_from(logits[None], Sampling(0.5, 4, 0.7))[0]
    expected = {
        model.tokenizer.label(token): [
            three(float(logits[token])),
            three(float(logits.softmax(-1)[token])),
            three(float(cool[token])),
            three(float(final[token])),
        ]
        for token in logits.topk(5).indices.tolist()
    }

    def agree() -> bool:
        shown = rows(visitor, "stages")
        return all(
            [*shown[label][:3], shown[label][5]] == cells for label, cells in expected.items()
        )

    wait_until(agree, "the model's own numbers in the columns", 30)
    assert sum(cells[3] == "cut" for cells in rows(visitor, "stages").values()) >= 9
    expect(page.get_by_text("top-k cuts")).to_be_visible()


def test_force_a_token_branch_and_undo(visitor: Visitor) -> None:
    page = visitor.open(address("translation"))
    visitor.widget("draw").get_by_role("button").click()
    wait_until(lambda: "branches" in visitor.query(), "what was drawn in the address")
    drawn = visitor.query()["branches"]
    expect(nodes(visitor, "branches_tree")).to_have_count(2)
    nodes(visitor, "branches_tree").first.click()
    visitor.asks(branches=f"{drawn}.0")
    visitor.rest()
    other = visitor.widget("stages").get_by_role("button").nth(3)
    other.click()
    expect(nodes(visitor, "branches_tree")).to_have_count(3)
    wait_until(lambda: f"{drawn}.0.0f" in visitor.query()["branches"], "the branch in the address")
    both = visitor.query()["branches"]
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    page.reload()
    visitor.rest()
    expect(nodes(visitor, "branches_tree")).to_have_count(3)
    expect(visitor.widget("branches_tree").locator(".node.forced")).to_have_count(1)
    assert visitor.query()["branches"] == both
    page.get_by_role("button", name="Undo").click()
    expect(nodes(visitor, "branches_tree")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(visitor.widget("branches_tree").locator(".node.on")).to_have_count(2)
    expect(nodes(visitor, "branches_tree")).to_have_count(2)
    undone = both.removeprefix(f"{drawn}.0.")
    page.get_by_role("button", name="Redo").click()
    visitor.asks(branches=f"{drawn}.0~{undone}")  # two clicks during one run are taken for one
    visitor.rest()
    page.get_by_role("button", name="Redo").click()
    expect(nodes(visitor, "branches_tree")).to_have_count(3)
    visitor.asks(branches=both)


def test_the_tree_follows_what_is_written_down_and_says_the_temperature(visitor: Visitor) -> None:
    asked = ".".join(f"0f{token}" for token in range(20, 40))
    page = visitor.open(address("shakespeare", branches=asked, temperature="0.5", seed="inf"))
    expect(nodes(visitor, "branches_tree")).to_have_count(21)
    stage = visitor.widget("branches_tree").locator(".stage")
    last = visitor.widget("branches_tree").locator(".node.on").last
    around, box = stage.bounding_box(), last.bounding_box()
    assert around is not None
    assert box is not None
    assert around["y"] <= box["y"] <= box["y"] + box["height"] <= around["y"] + around["height"]
    expect(page.get_by_text("probability at temperature 1")).to_be_visible()
    expect(page.get_by_text("“Seed” goes from 0 to 9,999, not “inf”; it is 0.")).to_be_visible()


def test_beam_tree(visitor: Visitor) -> None:
    """Every token that was considered stands there with its score; one of them is gone on from."""
    name = "translation"
    page = visitor.open(address(name, length="5"))
    page.get_by_role("radio", name="Beam search").click()
    model = library.open_model(name)
    start = start_of(model, TEXTS[name])
    prompt = ids_of([start.source or start.begun])
    found = beam_search(model.model, prompt, beams=4, max_length=5, alpha=0.6)
    shown = nodes(visitor, "beam_tree")
    expect(shown).to_have_count(len(found.nodes))
    numbers = visitor.widget("beam_tree").locator(".node .number").all_text_contents()
    assert numbers == [three(node.score) for node in found.nodes]
    best = visitor.widget("beam_tree").locator(".node.on .label").all_text_contents()
    assert best == [model.tokenizer.label(token) for token in found.path(found.ends[0])]
    shown.first.click()
    visitor.asks(branches=f"0f{found.nodes[0].token}")
    expect(page.get_by_role("radio", name="Token by token")).to_be_checked()


def test_teacher_forcing_beside_free_running(visitor: Visitor) -> None:
    page = visitor.open(address("translation", way="Teacher+forcing"))
    expect(page.get_by_text("By the rules of the task")).to_be_visible()
    field = page.get_by_label("The right answer", exact=True)
    field.fill("le chat blanc dort")
    field.press("Enter")
    expect(page.get_by_text("it departs at step 3")).to_be_visible()
    model = library.open_model("translation")
    text, answer = TEXTS["translation"], "le chat blanc dort"
    target = target_of(model, text, answer)
    own = forced(model.model, ids_of([start_of(model, text).source]), torch.tensor(target), given=1)
    name = model.tokenizer.label

    def agree() -> bool:
        shown = rows(visitor, "forcing")
        return shown["target out"] == [name(each) for each in own.right]

    wait_until(agree, "the typed target", 30)
    shown = rows(visitor, "forcing")
    assert shown["target in"][1:] == shown["target out"][:-1]
    assert shown["fed the target, it says"] == [name(each) for each in own.said]
    assert shown["its chance of the target"] == [three(float(each)) for each in own.chances]
    assert shown["its own words out"][: len(own.free)] == [name(each) for each in own.free]


def test_cross_attention_grows_as_it_writes(visitor: Visitor) -> None:
    page = visitor.open(address("translation", part="Cross"))
    before = visitor.picture("decoded_head")
    visitor.widget("draw").get_by_role("button").click()
    wait_until(lambda: visitor.picture("decoded_head") != before, "one more row", 30)
    page.get_by_role("button", name="Write on").click()
    expect(page.get_by_text("Stopped: </s> ends the text.")).to_be_visible()
    expect(visitor.widget("draw").get_by_role("button")).to_be_disabled()


def test_a_model_that_only_reads_has_a_way_out(visitor: Visitor) -> None:
    page = visitor.open("/decoding?model=negation")
    expect(page.get_by_text("This model only reads: choose one that writes")).to_be_visible()
    expect(page.get_by_role("radio", name="Beam search")).to_have_count(0)
    page.get_by_role("button", name="the last stage of the whole pass").click()
    visitor.titled("The whole pass")
    visitor.asks(stage="probabilities", model="negation")
    expect(page.get_by_text("Softmax · Encoder, answer")).to_be_visible()


def test_a_generated_sentence_grows_its_maps_token_by_token(visitor: Visitor) -> None:
    page = visitor.open("/writing?model=shakespeare&text=To+be&length=4")
    seen = [visitor.picture("written_head")]
    for step in range(1, 4):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("slider", name="Step")).to_have_value(str(step))
        wait_until(lambda: visitor.picture("written_head") not in seen, "a larger map", 30)
        seen.append(visitor.picture("written_head"))
    page.get_by_role("button", name="Back").click()
    visitor.shows("written_head", seen[-2])

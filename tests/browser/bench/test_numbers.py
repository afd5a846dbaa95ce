"""The parameter ledger and the code panel by hand: on models of ours and on published ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from explorer.library import opened_from
from models import Transformer, load_checkpoint, trace
from models.presets import PRESETS
from tests import zoo
from tests.browser.truth.screen import Claim, grid, rows
from tests.browser.visiting import Visitor
from tests.panels.pasting import run
from tests.source import ROOT

SHIPPED = ROOT / "models" / "checkpoints"
TEXTS = {"bert": "the cat is good", "gpt2": "5 17 3 9"}
DOCUMENTS = {
    "web tutorial, encoder": 520_064,
    "web tutorial, classifier": 389_218,
    "paper": 93_322_496,
    "notebook tutorial": 44_127_755,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same folders that the app was started with: they are made from the same seed."""
    made = tmp_path_factory.mktemp("published")
    return {
        "translation": SHIPPED / "translation",
        "bert": zoo.bert(made / "bert"),
        "gpt2": zoo.gpt2(made / "gpt2"),
    }


@pytest.mark.parametrize("model", ["translation", "bert"])
def test_parameter_ledger_sums(visitor: Visitor, model: str, folders: dict[str, Path]) -> None:
    visitor.open(f"/checkpoints?model={model}")
    total = load_checkpoint(folders[model]).model.n_parameters
    lines = rows(visitor)[1:]
    assert (lines[0][0], lines[0][-1]) == ("all parameters", f"{total:,}")
    sums = [line for line in lines if line[-2][0].isdigit()]
    assert len(sums) > 10
    for name, *_, numbers, count in sums:
        terms = numbers.replace(",", "").split(" + ")
        worth = sum(int(torch.tensor([*map(int, term.split(" × "))]).prod()) for term in terms)
        assert worth == int(count.replace(",", "")), name


def test_parameter_ledger_of_the_documents_configurations(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints")
    for name, total in DOCUMENTS.items():
        visitor.choose("Ledger of", name)
        expect(page.get_by_text(f"{total:,} parameters")).to_be_visible()
        with torch.device("meta"):
            assert Transformer(PRESETS[name]()).n_parameters == total
    visitor.asks(ledger=name)
    visitor.choose("Ledger of", "lecture handout")
    cells = page.get_by_test_id("stTable").get_by_text("1,050,624", exact=True)
    expect(cells.first).to_be_visible()


@pytest.mark.parametrize("model", ["translation", "bert"])
def test_code_that_reproduces_the_view(
    visitor: Visitor, model: str, folders: dict[str, Path]
) -> None:
    page = visitor.open(f"/?model={model}")
    page.get_by_text("The code that computes this").click()
    code = page.get_by_test_id("stCode").first
    expect(code).to_contain_text("load_checkpoint")
    made = run(code.inner_text(), folders[model].parent)
    query, key = 1, 2
    visitor.drawn("start_head")
    visitor.widget("start_head").locator("canvas").first.focus()
    for press in ["ArrowDown"] * (query + 1) + ["ArrowRight"] * key:
        page.keyboard.press(press)
    said = visitor.widget("start_head").locator(".sentence")
    expect(said).to_contain_text("held")
    shown = said.inner_text().rpartition(":")[2].split()[0]
    assert float(shown) == pytest.approx(float(made["weights"][query, key]), abs=1e-3)


@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_every_number_of_a_published_model_is_its_own(
    visitor: Visitor, model: str, folders: dict[str, Path]
) -> None:
    """One query's scores and weights, read off the page and made again from the core's q and k."""
    layer, head = 1, 2
    text, opened = TEXTS[model], opened_from(folders[model], model)
    ids = torch.tensor([[token.id for token in opened.tokenizer.encode(text)]])
    stack, query = opened.config.kind, ids.shape[1] - 1
    visitor.open(f"/pairs?model={model}&layer={layer}&head={head}&text={text.replace(' ', '+')}")
    seen = trace(load_checkpoint(folders[model]).model, ids)
    q, k = (seen[f"{stack}.{layer}.self_attn.{name}"][0, head].double() for name in "qk")
    scores = q[query] @ k.mT / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)  # the last query may look at every key
    lines = grid(visitor)
    assert len(lines) == ids.shape[1]
    claims = []
    for name, score, weight in lines:
        place = int(name.partition(" ")[0])
        claims.append(Claim(f"score of {name}", score, float(scores[place])))
        claims.append(Claim(f"weight of {name}", weight, float(weights[place])))
    steps = dict(rows(visitor, 0))
    claims.append(Claim("largest", steps["largest score of the row"], float(scores.max())))
    assert [claim.fault() for claim in claims if claim.fault()] == []

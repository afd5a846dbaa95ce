"""What is shown of a head: ways to look at attention, over the passes of real models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer import library
from explorer.analysis.looks import (
    Look,
    Shown,
    each_head,
    percent,
    shown,
)
from explorer.analysis.reweighing import value_and_output
from explorer.library import Opened
from explorer.parts import site
from explorer.reading import Reading, read
from explorer.text import Token, word_tokenizer
from explorer.text.special import DECODER
from models import trace
from tests import zoo
from tests.grids import grid
from tests.shelf import WORDS, put, shelf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = shelf(tmp_path_factory.mktemp("checkpoints"))
    words = word_tokenizer(WORDS, DECODER)
    more = {"n_kv_heads": 2, "positions": "rotary"}
    put(made, "grouped", words, "the cat", None, kind="decoder", n_heads=4, **more)
    return made


def opened(folder: Path, name: str) -> Opened:
    return library.opened_from(folder / name, name)


@pytest.fixture(scope="module")
def readings(folder: Path) -> dict[str, Reading]:
    text = {"letters": "the hat", "reverse": "31415"}
    names = ("translation", "letters", "reviews", "reverse", "grouped")
    return {name: read(opened(folder, name), text.get(name, "the black cat")) for name in names}


def test_a_plain_look_is_the_head_itself(
    readings: dict[str, Reading], subtests: pytest.Subtests
) -> None:
    for name in ["translation", "letters", "reviews", "reverse", "grouped"]:
        with subtests.test(name=name):
            reading = readings[name]
            for part in reading.parts:
                for head in range(part.heads):
                    made = shown(reading, part.name, 0, head, Look())
                    assert torch.equal(made.values, reading.weights(part.name, 0, head))
                    assert torch.equal(made.allowed, reading.mask(part.name, 0))
                    assert (made.rows, made.columns) == (
                        reading.rows(part.name),
                        reading.columns(part.name),
                    )
                    assert not made.cut.any()


@grid("name, of", ["translation", "letters", "grouped"], ["mean", "max"])
def test_heads_combined_are_those_of_the_layer(
    readings: dict[str, Reading], name: str, of: str
) -> None:
    reading = readings[name]
    for part in reading.parts:
        heads = reading.all_weights(part.name)[0]
        made = shown(reading, part.name, 0, 1, Look(of=of))
        by_hand = heads.mean(0) if of == "mean" else heads.amax(0)
        assert torch.allclose(made.values, by_hand, atol=1e-6)


@grid("name, of", ["translation", "letters", "grouped"], ["mean", "max"])
def test_heads_of_all_layers_are_combined(readings: dict[str, Reading], name: str, of: str) -> None:
    reading = readings[name]
    for part in reading.parts:
        heads = reading.all_weights(part.name).flatten(0, 1)
        made = shown(reading, part.name, 0, 1, Look(of=of, everywhere=True))
        by_hand = heads.mean(0) if of == "mean" else heads.amax(0)
        assert torch.allclose(made.values, by_hand, atol=1e-6)
        assert f"{part.heads} heads of each of the {part.layers} layers" in " ".join(made.notes)


def test_what_is_weighed_is_what_the_head_adds_to_the_stream(
    readings: dict[str, Reading], folder: Path, subtests: pytest.Subtests
) -> None:
    """The vectors behind the lengths, of all keys and heads, add up to the attention's output."""
    for name in ["translation", "letters", "reviews", "grouped"]:
        with subtests.test(name=name):
            reading = readings[name]
            for part in reading.parts:
                place, total = site(part.name, 0), torch.zeros(())
                ids = [
                    torch.tensor([[token.id for token in side]]) for side in reading_sides(reading)
                ]
                whole = trace(reading.trace.model, *ids, sites=(f"{place}.out",))
                for head in range(part.heads):
                    v, o_slice = value_and_output(reading, part.name, 0, head)
                    weights = reading.weights(part.name, 0, head)
                    total = total + weights @ (v @ o_slice.mT)
                    made = shown(reading, part.name, 0, head, Look(weighting="value"))
                    assert torch.allclose(made.values, weights * (v @ o_slice.mT).norm(dim=-1))
                stack, kind = part.name.split(".")
                attention_module = getattr(getattr(reading.trace.model, stack).blocks[0], kind)
                bias = attention_module.o_proj.bias
                total = total if bias is None else total + bias
                assert torch.allclose(total, whole[f"{place}.out"][0], atol=1e-5)


def reading_sides(reading: Reading) -> list[tuple[Token, ...]]:
    return [side for side in (reading.source, reading.target) if side]


def test_lines_and_matrix_show_the_same(
    readings: dict[str, Reading], subtests: pytest.Subtests
) -> None:
    for name in ["translation", "letters", "grouped"]:
        with subtests.test(name=name):
            reading = readings[name]
            look = Look(weighting="value", hidden=(0,), mass=70, words=True)
            for part in reading.parts:
                all_of_them = each_head(reading, part.name, 0, look, range(part.heads))
                for head in range(part.heads):
                    alone = shown(reading, part.name, 0, head, look)
                    assert torch.allclose(all_of_them.values[head], alone.values, atol=1e-6)


def test_everything_is_undone_from_the_originals(readings: dict[str, Reading]) -> None:
    reading = readings["reviews"]
    before = reading.weights("encoder.self_attn", 0, 0).clone()
    shown(reading, "encoder.self_attn", 0, 0, Look(hidden=(0, 1), mass=30))
    assert torch.equal(reading.weights("encoder.self_attn", 0, 0), before)


def test_the_removed_mass_is_printed(readings: dict[str, Reading]) -> None:
    reading = readings["reviews"]
    weights = reading.weights("encoder.self_attn", 0, 0)
    made = shown(reading, "encoder.self_attn", 0, 0, Look(hidden=(0, 2)))
    share = percent(float(weights[:, [0, 2]].sum(-1).mean()))
    assert f"Hidden: 2 keys, with {share} of the weight (mean over rows)." in said(made)
    assert made.hidden == (0, 2)


def said(made: Shown) -> str:
    return " ".join(made.notes)


def test_rows_add_up_to_one_only_where_they_do(readings: dict[str, Reading]) -> None:
    reading, adds_up = readings["translation"], "Every row adds up to one"
    part = "encoder.self_attn"
    for look in (Look(), Look(of="mean"), Look(hidden=(1,)), Look(words=True)):
        made = shown(reading, part, 0, 0, look)
        assert adds_up in said(made)
        assert torch.allclose(made.values.sum(-1), torch.ones(len(made.rows)), atol=1e-5)
    for look in (Look(mass=70), Look(of="max"), Look(weighting="value")):
        assert adds_up not in said(shown(reading, part, 0, 0, look))


def test_a_row_that_is_empty_in_some_heads_adds_up_to_less(
    readings: dict[str, Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, part = readings["letters"], "decoder.self_attn"

    def weights(reading: Reading, part: str, layer: int, head: int) -> torch.Tensor:
        plain = torch.full((len(reading.target), len(reading.target)), 1.0).tril()
        if head == 1:
            plain = torch.zeros_like(plain)
            plain[:, 0] = 1.0
        return plain / plain.sum(-1, keepdim=True)

    monkeypatch.setattr(Reading, "weights", weights)
    made = shown(reading, part, 0, 0, Look(of="mean", hidden=(0,)))
    assert float(made.values[1].sum()) == pytest.approx(3 / 4)
    assert "Every row adds up to one" not in said(made)
    assert "Some rows add up to less than one: in some heads they see nothing." in said(made)
    assert "Every row adds up to one" in said(shown(reading, part, 0, 0, Look(hidden=(0,))))


def test_every_key_may_be_hidden(readings: dict[str, Reading]) -> None:
    reading = readings["reviews"]
    every = tuple(range(len(reading.source)))
    made = shown(reading, "encoder.self_attn", 0, 0, Look(hidden=every))
    assert not made.values.any()
    assert f"Rows that looked at nothing else: {len(every)}." in said(made)


def test_one_token_is_enough(folder: Path) -> None:
    reading = read(opened(folder, "reverse"), "3")
    for look in (Look(mass=50), Look(of="mean", words=True), Look(hidden=(0,), weighting="value")):
        made = shown(reading, "encoder.self_attn", 0, 0, look)
        assert tuple(made.values.shape) == (len(made.rows), len(made.columns))


def test_what_is_no_number_is_counted_and_breaks_nothing(
    readings: dict[str, Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    part, reading = "encoder.self_attn", readings["reviews"]
    broken = reading.weights(part, 0, 0).clone()
    broken[1] = float("nan")
    broken[2] = 0
    monkeypatch.setattr(Reading, "weights", lambda *_: broken)
    for look in (Look(), Look(hidden=(0,), mass=50), Look(of="max", words=True)):
        made = shown(reading, part, 0, 0, look)
        assert made.values[1].isnan().any()
        assert not made.values[[0, *range(3, len(made.rows))]].isnan().any()
        assert "hold no number: the pass itself gave none there." in said(made)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    published = zoo.bert(tmp_path_factory.mktemp("zoo") / "bert")
    return read(library.opened_from(published, "bert"), "the capital", "a dog opened")


def test_a_pair_is_taken_apart_without_losing_a_cell(pair: Reading) -> None:
    part, whole = "encoder.self_attn", 0.0
    for name in ("A→A", "A→B", "B→A", "B→B"):
        made = shown(pair, part, 0, 0, Look(sentences=name))
        whole += float(made.values.sum())
        assert f"{name}: " in said(made)
        second = {token.second for token in made.columns if not token.special}
        assert second == {name[-1] == "B"}
    assert whole == pytest.approx(len(pair.source), rel=1e-5)


def test_words_cut_by_a_published_tokenizer_are_merged(pair: Reading) -> None:
    made = shown(pair, "encoder.self_attn", 0, 0, Look(words=True))
    assert len(made.columns) < len(pair.source) or all(len(group) == 1 for group in made.groups)
    assert "tokens down are" in said(made)
    assert torch.allclose(made.values.sum(-1), torch.ones(len(made.rows)), atol=1e-5)

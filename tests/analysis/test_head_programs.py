"""Mixtures of programs: a planted head is found, the fit is least squares, losses are those of the
core with the maps put in by hand, and bad input is one sentence."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.__main__ import main
from explorer.analysis import head_programs
from explorer.analysis.head_programs import (
    example_lines,
    fit,
    has_loss,
    loss_with,
    measure_programs,
    overlap,
    ranked,
    read_lines,
    replacement_curve,
)
from explorer.catalog.opened_model import OpenModel
from explorer.inference.token_programs import ProgramError
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from models.interventions import Replace
from models.trace import trace
from tests.tiny import saved_and_opened

LETTERS, PLACES = 15, 40
LINES = tuple(word * 2 for word in ("abcdefgh", "hgkbacdl", "elfbkagc", "cakedibl", "ijklabcd"))


def planted(folder: Path) -> OpenModel:
    """Layer 0 attends to the token before and copies it; layer 1 looks for what followed."""
    letters = character_tokenizer("abcdefghijkl", DECODER)
    width = 2 * LETTERS + PLACES
    how: dict[str, Any] = {"positions": "learned", "scale_embedding": False, "n_layers": 2}
    how |= {"n_heads": 1, "d_model": width, "d_ff": 0, "max_len": PLACES}
    opened = saved_and_opened(folder, "planted", letters, "abcabc", **how)
    for name, parameter in opened.model.named_parameters():
        parameter.zero_() if "norm" not in name or "bias" in name else parameter.fill_(1.0)
    stack: Any = opened.model.decoder
    stack.embedding.weight[:, :LETTERS] = torch.eye(LETTERS)
    stack.positions.table.weight[:, LETTERS : LETTERS + PLACES] = torch.eye(PLACES)
    place, copy = slice(LETTERS, LETTERS + PLACES), slice(LETTERS + PLACES, width)
    previous, induction = (block.self_attn for block in stack.blocks)
    previous.q_proj.weight[place, place] = 100 * torch.ones(PLACES - 1).diag(1)
    previous.k_proj.weight[place, place] = torch.eye(PLACES)
    previous.v_proj.weight[:LETTERS, :LETTERS] = torch.eye(LETTERS)
    previous.o_proj.weight[copy, :LETTERS] = torch.eye(LETTERS)
    induction.q_proj.weight[copy, :LETTERS] = 100 * torch.eye(LETTERS)
    induction.k_proj.weight[copy, copy] = torch.eye(LETTERS)
    return opened


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenModel:
    return planted(tmp_path_factory.mktemp("planted"))


def test_planted_heads_are_found_as_their_programs(opened: OpenModel) -> None:
    previous, induction = measure_programs(opened, read_lines(opened, LINES))
    assert previous.mixture[0][0] == "previous(1)"
    assert previous.name == "previous-token head"
    assert induction.mixture[0][0].startswith("token after")
    assert induction.name == "induction head"
    assert min(previous.overlap, induction.overlap) >= 0.98
    assert "overlap 1" in previous.in_words


def _error(maps: Tensor, weights: Tensor, members: tuple[int, ...]) -> float:
    """The least squared error of non-negative shares, by projected gradients."""
    some, shares = maps[list(members)].double(), torch.full((len(members),), 0.3).double()
    step = 1 / torch.linalg.matrix_norm(some @ some.mT, 2)
    for _ in range(400):
        shares = (shares - step * (some @ (some.mT @ shares - weights))).clamp(min=0)
    return float((shares @ some - weights).square().sum())


def test_the_fit_has_the_least_squared_error_of_any_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COMPARED": 1, "SIMPLER": 0.0, "SMALLEST_SHARE": 0.0}.items():
        monkeypatch.setattr(f"explorer.analysis.head_programs.{name}", value)
    generator = torch.Generator().manual_seed(3)
    maps = torch.rand(6, 40, generator=generator)
    heads = torch.rand(3, 6, generator=generator).square() @ maps
    shares = fit(maps, heads)
    assert torch.allclose(shares.sum(-1), torch.ones(3))
    for weights, row in zip(heads.double(), shares, strict=True):
        members = tuple(row.nonzero()[:, 0].tolist())
        least = min(_error(maps, weights, some) for some in combinations(range(6), 3))
        assert _error(maps, weights, members) == pytest.approx(least, rel=1e-3)


def test_overlap_is_the_intersection_over_the_union() -> None:
    one, other = torch.tensor([[0.2, 0.8]]), torch.tensor([[0.5, 0.5]])
    assert overlap(one, other, (-1,)).item() == pytest.approx(0.7 / 1.3)
    assert overlap(one, one, (-1,)).item() == 1


def test_the_loss_is_that_of_the_core_with_the_maps_put_in(opened: OpenModel) -> None:
    lines = read_lines(opened, LINES)
    heads = measure_programs(opened, lines)
    ids = lines.ids[lines.fitted :]

    def loss(*edits: Replace) -> float:
        logits = trace(opened.model, ids, sites=(), edits=edits).output.log_softmax(-1)
        return -float(logits[:, :-1].gather(-1, ids[:, 1:, None]).mean())

    assert loss_with(opened, lines, ()) == pytest.approx(loss())
    size = ids.shape[1]
    uniform = torch.ones(size, size).tril() / torch.arange(1, size + 1)[:, None]
    curve = replacement_curve(opened, lines, heads)
    assert [*curve] == [0, 1, 2]
    flat = [Replace(f"decoder.{layer}.self_attn.weights", uniform) for layer in range(2)]
    assert curve[2][1] == pytest.approx(loss(*flat))
    assert curve[2][0] == pytest.approx(loss(), abs=0.02)
    assert ranked(heads)[0].overlap >= ranked(heads)[1].overlap


def test_lines_of_different_lengths_change_nothing(opened: OpenModel) -> None:
    short = (*LINES[:4], LINES[4][:9])
    alone = [loss_with(opened, read_lines(opened, (line, line[::-1])), ()) for line in short[3:]]
    both = loss_with(
        opened, read_lines(opened, (*short[:3], *(line[::-1] for line in short[3:]))), ()
    )
    sizes = torch.tensor([16.0, 9.0])  # next tokens of each, after <s>
    assert both == pytest.approx(float((torch.tensor(alone) * sizes).sum() / 25), rel=1e-4)


def test_bad_lines_and_models_are_refused_in_one_sentence(
    opened: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for texts, why in (
        (("abcdef", "a"), "Line 2 has 2 tokens and a line needs at least 4"),
        (("abcdef",), "Give at least two lines"),
    ):
        with pytest.raises(ProgramError, match=why):
            read_lines(opened, texts)
    lines = read_lines(opened, LINES)
    with pytest.raises(ProgramError, match="is no predicate"):
        measure_programs(opened, lines, ["key is blue"])
    with monkeypatch.context() as patch:
        nothing = torch.zeros(5, 17, 17, dtype=torch.bool)
        patch.setattr(head_programs, "visible_of", lambda *_: nothing)
        with pytest.raises(ProgramError, match="nothing to describe"):
            measure_programs(opened, lines)
    stack: Any = opened.model.decoder
    weight = stack.blocks[1].self_attn.q_proj.weight
    weight[0, 0] = torch.nan
    with pytest.raises(ProgramError, match="Layer 1 has attention scores that are not finite"):
        measure_programs(opened, read_lines(opened, LINES[1:]))
    weight[0, 0] = 0.0


@pytest.mark.parametrize("kind", ["encoder", "encoder-decoder"])
def test_models_without_next_tokens_have_programs_and_no_loss(kind: str, tmp_path: Path) -> None:
    other = saved_and_opened(tmp_path, "other", kind=kind, shaken_by=0.3)
    lines = read_lines(
        other, ("the black cat eats the cat", "a dog does not sleep", "the dog eats")
    )
    heads = measure_programs(other, lines)
    assert not has_loss(other)
    assert lines.part.name == "encoder.self_attn"
    assert all(0 <= head.overlap <= 1 for head in heads)
    assert all(sum(share for _, share in head.mixture) == pytest.approx(1) for head in heads)


def test_the_lines_of_the_app_can_be_read(opened: OpenModel) -> None:
    assert len(example_lines(opened)) == 12


def test_the_command_writes_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], opened: OpenModel
) -> None:
    out, data = tmp_path / "heads.json", tmp_path / "lines.txt"
    data.write_text("\n".join(LINES))
    lines = read_lines(opened, LINES)
    args = ["programs", "--model", str(opened.folder), "--data", str(data), "--out", str(out)]
    assert main(args) == 0
    written = json.loads(out.read_text())
    assert [head["layer"] for head in written["heads"]] == [0, 1]
    assert {*written["heads"][0]} == {"layer", "head", "mixture", "iou", "iou_spread"}
    assert [{*point} for point in written["curve"]] == [{"heads", "loss", "loss_random"}] * 3
    assert written["loss"] == written["curve"][0]["loss"]
    assert f"{len(lines.tokens)} of 5 lines are read" in capsys.readouterr().out
    data.write_text("a\nabcdef")
    assert main(args) == 2
    assert "Line 1 has 2 tokens" in capsys.readouterr().err

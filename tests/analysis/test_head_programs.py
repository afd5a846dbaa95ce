"""Mixtures of programs: a planted head is found, the fit is least squares, losses are those of the
core with the maps put in by hand, and bad input is one sentence."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.__main__ import main
from explorer.analysis import head_programs
from explorer.analysis.head_programs import (
    fit,
    has_loss,
    loss_with,
    measure_programs,
    overlap,
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
    one, other = torch.tensor([[0.2, 0.8]]), torch.tensor([[0.5, 0.5]])
    assert overlap(one, other, (-1,)).item() == pytest.approx(0.7 / 1.3)
    same = head_programs.same_as(opened, read_lines(opened, LINES), "any", ["uniform", "first"])
    assert same == {"any", "uniform"}


def test_the_fit_has_the_least_squared_error_of_any_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COMPARED": 1, "SIMPLER": 0.0, "SMALLEST_SHARE": 0.0}.items():
        monkeypatch.setattr(f"explorer.analysis.head_programs.{name}", value)
    generator = torch.Generator().manual_seed(3)
    maps = torch.rand(6, 40, generator=generator)
    heads = torch.rand(3, 6, generator=generator).square() @ maps
    sets = [some for size in (1, 2, 3) for some in combinations(range(6), size)]
    for weights, row in zip(heads, fit(maps, heads), strict=True):
        columns = weights[:, None]
        fits = [torch.linalg.lstsq(maps[list(some)].T, columns, driver="gels") for some in sets]
        best = min(fits, key=lambda of: float(of.residuals) if of.solution.min() > 0 else torch.inf)
        shares = best.solution[:, 0] / best.solution.sum()
        assert torch.allclose(row[row > 0], shares, atol=1e-4)


def test_the_loss_is_that_of_the_core_with_the_maps_put_in(opened: OpenModel) -> None:
    lines = read_lines(opened, (*LINES[:4], LINES[4][:9]))
    heads = measure_programs(opened, lines)

    def loss(is_uniform: bool) -> float:
        losses = []
        for row in lines.tokens[lines.fitted :]:
            ids = row.ids[None]
            visible = torch.ones(ids.shape[1], ids.shape[1]).tril()
            uniform = visible / visible.sum(-1, keepdim=True)
            edits = [Replace(f"decoder.{at}.self_attn.weights", uniform) for at in range(2)]
            passed = trace(opened.model, ids, sites=(), edits=edits if is_uniform else [])
            losses += (
                -passed.output.log_softmax(-1)[0, range(ids.shape[1] - 1), ids[0, 1:]]
            ).tolist()
        return sum(losses) / len(losses)

    assert loss_with(opened, lines, ()) == pytest.approx(loss(False), rel=1e-4)
    curve = replacement_curve(opened, lines, heads)
    assert [*curve] == [0, 1, 2]
    assert curve[2][1] == pytest.approx(loss(True), rel=1e-4)
    assert curve[2][0] == pytest.approx(loss(False), abs=0.02)


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
    with pytest.raises(ProgramError, match="“blue” is none of them"):
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


def test_the_command_writes_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], opened: OpenModel
) -> None:
    out, data = tmp_path / "heads.json", tmp_path / "lines.txt"
    data.write_text("\n".join(LINES))
    args = ["programs", "--model", str(opened.folder), "--data", str(data), "--out", str(out)]
    assert main(args) == 0
    written = json.loads(out.read_text())
    assert [head["layer"] for head in written["heads"]] == [0, 1]
    assert {*written["heads"][0]} == {"layer", "head", "mixture", "iou", "iou_spread"}
    assert [{*point} for point in written["curve"]] == [{"heads", "loss", "loss_random"}] * 3
    assert written["loss"] == written["curve"][0]["loss"]
    assert "5 of 5 lines are read" in capsys.readouterr().out
    data.write_text("a\nabcdef")
    assert main(args) == 2
    assert "Line 1 has 2 tokens" in capsys.readouterr().err

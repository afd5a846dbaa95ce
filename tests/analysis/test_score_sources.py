"""Sources of an attention score: they add up, and each is its share by autograd."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from explorer.__main__ import main
from explorer.analysis.pair_directions import score_by_direction
from explorer.analysis.score_sources import (
    ScoreSide,
    ScoreSources,
    SourcesError,
    score_sources,
    sources_in_words,
)
from explorer.catalog import opened_model
from explorer.catalog.attention_parts import site
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.interventions import edits
from models.normalization import LayerNorm, RMSNorm
from models.transformer import evaluating
from tests.analysis.conftest import TEXT, inputs_of, opened_of, read
from tests.analysis.contrasts import Reading
from tests.analysis.kinds_of_model import KINDS_OF_MODEL
from tests.closeness import assert_close_to as close
from tests.inference.test_edited_pass import SOMETHING


def error_of(sources: ScoreSources) -> float:
    """The largest error of a sum, relative to the largest source."""
    sides = sources.sides
    largest = max(abs(one.value) for side in sides for one in side)
    by_token = max(abs(float(one.tokens.sum()) - one.value) for side in sides for one in side)
    table = float(sources.table.sum()) + (sources.position_bias or 0.0) - sources.contrast
    return max(sources.difference, by_token / largest, abs(table) / largest)


def every_contrast(found: ForwardPass) -> list[ScoreSources]:
    """In every part and layer: the mean of the others, another key, and the score alone."""
    made = []
    for part in found.parts:
        for layer in range(part.layers):
            at = part.name, layer, part.heads - 1, len(found.rows(part.name)) - 1
            visible = found.mask(part.name, layer)[-1].nonzero()[:, 0].tolist()
            made.append(score_sources(found, *at, visible[-1]))
            made.append(score_sources(found, *at, visible[0], plain=True))
            if len(visible) > 1:
                made.append(score_sources(found, *at, visible[0], visible[1]))
    return made


def test_the_sources_add_up_to_the_score(found: ForwardPass) -> None:
    for sources in every_contrast(found):
        assert error_of(sources) <= 1e-10
        is_named = "With the position bias of" in sources_in_words(sources, found.columns)
        assert is_named == (sources.position_bias is not None)


def test_directions_and_biases_add_up_to_the_score(found: ForwardPass) -> None:
    for part in found.parts:
        at = part.name, part.layers - 1, part.heads - 1, len(found.rows(part.name)) - 1, 0
        values, *axes = score_by_direction(found, *at)
        for of_side in axes:
            close(of_side.mT @ of_side, torch.eye(of_side.shape[1], dtype=of_side.dtype))
        unbiased, nothing = [], values.new_zeros(found.config.head_width)
        for name, place in (("query", at[3]), ("key", at[4])):
            places, one = torch.tensor([place]), torch.ones(1)
            side = ScoreSide(found, *at[:3], name, place, places, one, nothing)
            vector = side.reading.of(side.stream_read())[None]
            unbiased.append(vector if side.rotate is None else side.rotate(vector[None])[0])
        close(values.sum(), found.config.scale * (unbiased[0] * unbiased[1]).sum())


D, E, C = "decoder.self_attn", "encoder.self_attn", "decoder.cross_attn"
OTHER = "the red dog runs le chien"
CHANGES: list[edits.Intervention] = [
    *(*SOMETHING, edits.AblateHead(D, 0, 1, "mean"), edits.AblateAttention(C, 0)),
    *(edits.AblateAttention(E, 0, "mean"), edits.AblateNeuron(E, 0, 22)),
    *(edits.AblateMlp(E, 0, "mean"), edits.MaskCell(E, 0, 2, 1, False)),
    *(edits.Patch(part, 0, head, 1, OTHER) for part in (D, E) for head in (None, 1)),
    edits.ReplaceByProgram(E, 0, 1, (("first", 1.0),)),
]


@pytest.mark.parametrize("norms", ["pre", "sandwich"])
def test_the_sources_of_every_intervention_add_up(
    norms: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for name, value in {"n_layers": 2, "norm_position": norms}.items():
        monkeypatch.setitem(KINDS_OF_MODEL["both"], name, value)
    opened = opened_of(tmp_path, "both")
    forward = run_text(opened, TEXT)
    alone = [(edit,) for edit in CHANGES] if norms == "pre" else []
    for made in [(), *alone, tuple(CHANGES[:-1])]:
        with subtests.test(edits=made):
            edited = run_edited(opened, forward, made)
            assert edited.applied == made
            for part in forward.parts:
                at = part.name, part.layers - 1, 0, len(forward.rows(part.name)) - 1
                visible = edited.forward.mask(*at[:2])[-1].nonzero()
                sources = score_sources(edited.forward, *at, int(visible[0]))
                assert error_of(sources) <= 1e-10
                scores = edited.forward.scores(*at[:3])
                assert sources.score == pytest.approx(float(scores[-1, visible[0]]))


def test_what_an_intervention_replaced_is_named(tmp_path: Path) -> None:
    opened = opened_of(tmp_path, "decoder")
    forward, program = run_text(opened, TEXT), edits.ReplaceByProgram(D, 1, 0, (("first", 1.0),))
    for edit, name in (
        (edits.AblateHead(D, 0, 1), "edited head 0.1"),
        (edits.AblateAttention(D, 0), "self-attention 0"),
        (edits.AblateMlp(D, 0), "mlp 0"),
        (edits.Steer(D, 0, None, 2.0, (TEXT, OTHER)), "intervention 0"),
        (edits.Patch(D, 0, None, 5, OTHER), "intervention 0"),
    ):
        edited = run_edited(opened, forward, (edit,)).forward
        sources = score_sources(edited, D, 1, 0, 5, 2)
        (value,) = (one.value for one in sources.queries if one.name == name)
        assert (abs(value) < 1e-12) == ("intervention" not in name), name
    with pytest.raises(SourcesError, match="Programs replace the map of this head"):
        score_sources(run_edited(opened, forward, (program,)).forward, D, 1, 0, 5, 2)


def test_in_single_precision_too() -> None:
    for name in ("translation", "shakespeare", "reviews"):
        opened = opened_model.open_model(name)
        for sources in every_contrast(run_text(opened, opened.example)):
            assert error_of(sources) <= 1e-4, name


def frozen_scale(norm: LayerNorm | RMSNorm, x: Tensor) -> Tensor:
    """The norm with its scale as a constant."""
    centred = x - x.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else x
    scale = (centred.detach().square().mean(-1, keepdim=True) + norm.eps).rsqrt()
    return centred * scale * norm.weight + getattr(norm, "bias", 0)


def sources_at(name: str, heads: int) -> list[str]:
    """The sources that write at this site of the trace."""
    match name.split(".")[1:]:
        case ["embed"]:
            return ["embedding"]
        case ["pos_embed"]:
            return ["position"]
        case [layer, "mlp", "out"]:
            return [f"mlp {layer}"]
        case [layer, attention, "head_out"]:
            crosses = "cross " * (attention == "cross_attn")
            return [f"{crosses}{layer}.{head}" for head in range(heads)]
    return []


class ScaledPass:
    """A pass in which what each source wrote is a constant times a factor of 1.

    A score's slope by a factor is what the source adds to it: it has no other way there.
    """

    def __init__(self, found: ForwardPass) -> None:
        self.heads, self.factors = found.config.n_heads, dict[str, Tensor]()
        self.seen: dict[str, Tensor] = {}
        with evaluating(found.trace.model), torch.enable_grad():
            found.trace.model(*inputs_of(found), tap=Reading(self._shown))

    def _shown(self, name: str, value: Tensor) -> Tensor:
        self.seen[name] = value
        if not (names := sources_at(name, self.heads)):
            return value
        self.factors[name] = value.new_ones(len(names), 1, 1).requires_grad_()
        return value.detach() * self.factors[name]

    def shares(self, score: Tensor, stack: str) -> dict[str, float]:
        """What each source of this stack adds to the score."""
        by_site = {site: by for site, by in self.factors.items() if site.startswith(f"{stack}.")}
        slopes = torch.autograd.grad(
            score, [*by_site.values()], allow_unused=True, retain_graph=True
        )
        return {
            name: float(share)
            for site, slope in zip(by_site, slopes, strict=True)
            if slope is not None
            for name, share in zip(sources_at(site, self.heads), slope.flatten(), strict=True)
        }


def test_each_source_is_its_share_by_autograd(
    found: ForwardPass, monkeypatch: pytest.MonkeyPatch
) -> None:
    for norm in (LayerNorm, RMSNorm):
        monkeypatch.setattr(norm, "forward", frozen_scale)
    for part in found.parts:
        layer, head, query = part.layers - 1, part.heads - 1, len(found.rows(part.name)) - 1
        key, *others = found.mask(part.name, layer)[query].nonzero()[:, 0].tolist()
        sources = score_sources(found, part.name, layer, head, query, key)
        scaled, at = ScaledPass(found), site(part.name, layer)
        q = scaled.seen[f"{at}.q"][0, head, query]
        k = scaled.seen[f"{at}.k"][0, found.config.kv_head(head)]
        k = k[key] - (k[others].mean(0) if others else 0)
        stack = part.name.split(".")[0]
        key_stack = "encoder" if part.name.endswith("cross_attn") else stack
        for side, score, of in (
            (sources.queries, q @ k.detach(), stack),
            (sources.keys, q.detach() @ k, key_stack),
        ):
            ours = {source.name: source.value for source in side}
            shares = scaled.shares(found.config.scale * score, of)
            assert {name: ours[name] for name in shares} == pytest.approx(shares, abs=1e-9)
            assert ours.keys() - shares.keys() <= {"bias"}


def test_what_has_no_sources_says_why(tmp_path: Path) -> None:
    found, at = read(tmp_path, "decoder"), ("decoder.self_attn", 1, 0, 1)
    for key, against, why in (
        (2, None, "The key is masked for this query"),
        (0, 3, "The other key is masked"),
        (0, 0, "A key has no difference from itself"),
    ):
        with pytest.raises(SourcesError, match=why):
            score_sources(found, *at, key, against)
    alone = score_sources(found, *at[:3], 0, 0)
    assert (alone.others, alone.contrast) == (0, alone.score)
    assert sources_in_words(alone, found.columns).startswith("The score is ")
    found.trace.values["decoder.1.self_attn.q"][:] = torch.nan
    with pytest.raises(SourcesError, match="not finite"):
        score_sources(found, *at, 0)


def test_the_command_writes_the_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened, out = opened_model.open_model("induction"), tmp_path / "why.json"
    pick = ["--head", "1.0", "--key", "1"]
    base = ["why", "--model", str(opened.folder), "--text", opened.example, "--out", str(out)]
    assert main([*base, *pick]) == 0
    made = json.loads(out.read_text())
    forward = run_text(opened, opened.example)
    ours = score_sources(forward, "decoder.self_attn", 1, 0, len(forward.target) - 1, 1)
    assert made["contrast"] == pytest.approx(ours.contrast)
    for side, total in zip(("query", "key"), ours.sums, strict=True):
        values = [one["value"] for one in made["sources"] if one["side"] == side]
        assert sum(values) + (made["position_bias"] or 0) == pytest.approx(total, rel=1e-4)
    assert sources_in_words(ours, forward.columns) in capsys.readouterr().out
    for wrong, why in (
        (["--head", "9.0", "--key", "1"], "--head must be a layer from 0 to"),
        (["--head", "1.0", "--key", "99"], "--key must be from"),
        ([*pick, "--against", "2", "--plain"], "not both"),
        ([*pick, "--query", "0"], "The key is masked"),
    ):
        assert main([*base, *wrong]) == 2
        assert why in capsys.readouterr().err

"""Sources of an attention score: they add up, and the reference library's modules agree."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.interventions import edits
from explorer.text import Token
from models import trace
from models.trace import CHEAP_SITES
from tests.analysis.conftest import TEXT, opened_of, read
from tests.analysis.kinds_of_model import KINDS_OF_MODEL
from tests.closeness import assert_close_to as close
from tests.inference.test_edited_pass import SOMETHING
from tests.parity.cases import CASES
from tests.parity.families import AllInDouble, open_pair
from tests.source import ROOT


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
    *(edits.AblateAttention(E, 0, "mean"), edits.AblateNeuron(E, 0, 3)),
    *(edits.AblateMlp(E, 0, "mean"), edits.MaskCell(E, 0, 2, 1, False)),
    *(edits.Patch(part, 0, head, 1, OTHER) for part in (D, E) for head in (None, 1)),
    edits.ReplaceByProgram(E, 0, 1, (("first", 1.0),)),
]


def test_the_sources_of_every_intervention_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """And what the heads leave of the stream's change is what the feed-forward layer wrote."""
    monkeypatch.setitem(KINDS_OF_MODEL["both"], "n_layers", 2)
    opened = opened_of(tmp_path, "both")
    forward = run_text(opened, TEXT)
    for made in [(), *[(edit,) for edit in CHANGES], tuple(CHANGES[:-1])]:
        with subtests.test(edits=made):
            edited = run_edited(opened, forward, made)
            assert edited.applied == made
            for part in forward.parts:
                at = part.name, part.layers - 1, 0, len(forward.rows(part.name)) - 1
                visible = edited.forward.mask(*at[:2])[-1].nonzero()
                sources = score_sources(edited.forward, *at, int(visible[0]))
                with monkeypatch.context() as patch:
                    patch.setattr("explorer.analysis.score_sources.is_plain_sum", lambda _: False)
                    again = score_sources(edited.forward, *at, int(visible[0]))
                for sides in zip(sources.sides, again.sides, strict=True):
                    some, same = ({one.name: one.value for one in side} for side in sides)
                    assert some == pytest.approx(same, abs=1e-10)
                assert max(error_of(sources), error_of(again)) <= 1e-10
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
    for path in sorted(ROOT.glob("models/checkpoints/*/run.json")):
        opened = opened_model.open_model(path.parent.name)
        for sources in every_contrast(run_text(opened, opened.example)):
            assert error_of(sources) <= 1e-4, opened.name


Writes = dict[str, Tensor]
Seen = dict[str, tuple[Tensor, Tensor]]
Score = Callable[[Tensor, Tensor], Tensor]
"""The contrast of one score, from the streams (t, d) of the queries and of the keys."""


def seen_by(model: Any, modules: dict[str, Any], **inputs: Tensor) -> Seen:
    """What the reference's modules read and wrote in one pass, (t, …)."""
    seen: Seen = {}

    def keep(name: str, _: Any, read: Any, wrote: Any) -> None:
        seen[name] = read[0][0], (wrote[0] if isinstance(wrote, tuple) else wrote)[0]

    hooks = [module.register_forward_hook(partial(keep, name)) for name, module in modules.items()]
    with torch.no_grad(), AllInDouble():
        model(**inputs, use_cache=False)
    for hook in hooks:
        hook.remove()
    return seen


def heads_of(seen: Seen, name: str, weight: Tensor, heads: int) -> Writes:
    """The write of every head, from the input of the output projection (hw to d)."""
    read = seen[name][0].unflatten(-1, (heads, -1))
    columns = weight.unflatten(0, (heads, -1))
    return {f"{name}.{head}": read[:, head] @ columns[head] for head in range(heads)}


def norm(module: Any, x: Tensor, *, plus: float = 0.0) -> Tensor:
    """The norm with its scale as a constant."""
    eps = module.eps if hasattr(module, "eps") else module.variance_epsilon
    bias = getattr(module, "bias", None)
    centred = x if bias is None else x - x.mean(-1, keepdim=True)
    scale = (centred.detach().square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale * (module.weight + plus)
    return normed if bias is None else normed + bias


def agrees(ours: ScoreSources, queries: Writes, keys: Writes, score: Score) -> None:
    """Each write times the gradient of the score by its stream is our value of the source."""
    for side, writes, swap in ((ours.queries, queries, False), (ours.keys, keys, True)):
        other = torch.stack([*(queries if swap else keys).values()]).sum(0)
        stream = torch.stack([*writes.values()]).sum(0).detach().requires_grad_()
        value = score(other, stream) if swap else score(stream, other)
        assert float(value) == pytest.approx(ours.contrast, rel=1e-6)
        (slope,) = torch.autograd.grad(value, stream)
        found = {one.name: one.value for one in side}
        compared = {name for name in writes if name in found}
        assert len(compared) >= 4
        for name in compared:
            theirs = float((slope * writes[name]).sum())
            assert found[name] == pytest.approx(theirs, rel=1e-4, abs=1e-6), name


def forward_of(pair: Any, ids: Tensor, target: Tensor | None = None) -> ForwardPass:
    """Our pass over these token IDs."""
    inputs = (ids,) if target is None else (ids, target)
    tokens = [tuple(Token(i, str(i)) for i in row[0].tolist()) for row in inputs]
    source, read = ((), tokens[0]) if target is None else tokens
    rest: Any = trace(pair.ours.model, *inputs, sites=CHEAP_SITES), None
    return ForwardPass("", pair.ours.config, source, read, read, *rest)


def contrast(q: Tensor, k: Tensor, scale: float, window: int = 99) -> Tensor:
    """The score of the last query and one key minus the mean of the others; q and k (t, w)."""
    scores, places = scale * k @ q[-1], torch.arange(len(k))
    return scores[KEY] - scores[(places != KEY) & (places > QUERY - window)].mean()


IDS = torch.tensor([[5, 9, 7, 11, 6, 9]])
QUERY, KEY = 5, 2


def test_gpt2_in_hooks(tmp_path: Path) -> None:
    pair = open_pair(CASES["gpt2"], tmp_path).double()
    model, heads = pair.reference.transformer, pair.reference.config.n_head
    modules = {"embedding": model.wte, "position": model.wpe}
    for layer, block in enumerate(model.h):
        modules |= {f"{layer}": block.attn.c_proj, f"mlp {layer}": block.mlp}
    seen = seen_by(pair.reference, modules, input_ids=IDS)
    last = len(model.h) - 1
    writes = {name: seen[name][1] for name in ("embedding", "position")}
    for layer in range(last):
        proj = model.h[layer].attn.c_proj
        writes |= heads_of(seen, f"{layer}", proj.weight, heads)
        writes |= {f"bias {layer}": proj.bias.expand(len(IDS[0]), -1)}
        writes |= {f"mlp {layer}": seen[f"mlp {layer}"][1]}
    block = model.h[last]

    def score(xq: Tensor, xk: Tensor) -> Tensor:
        q, _, _ = block.attn.c_attn(norm(block.ln_1, xq)).chunk(3, -1)
        _, k, _ = block.attn.c_attn(norm(block.ln_1, xk)).chunk(3, -1)
        q, k = (x.unflatten(-1, (heads, -1))[:, 1] for x in (q, k))
        return contrast(q, k, q.shape[-1] ** -0.5)

    ours = score_sources(forward_of(pair, IDS), "decoder.self_attn", last, 1, QUERY, KEY)
    agrees(ours, writes, writes, score)


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_rotary_families_in_hooks(name: str, tmp_path: Path) -> None:
    """Gemma 2 also norms what a layer writes, and caps the score: ours is that before the cap."""
    pair = open_pair(CASES[name], tmp_path).double()
    model, config = pair.reference.model, pair.reference.config
    is_gemma, heads = name == "gemma2", config.num_attention_heads
    plus, last = float(is_gemma), len(model.layers) - 1
    modules: dict[str, Any] = {"first": model.layers[0]}
    for layer, block in enumerate(model.layers):
        modules |= {f"{layer}": block.self_attn.o_proj, f"mlp {layer}": block.mlp}
    seen = seen_by(pair.reference, modules, input_ids=IDS)
    writes = {"embedding": seen["first"][0]}

    def after(module: Any, parts: Writes) -> Writes:
        """The parts of an output as the norm behind it scales the whole."""
        if not is_gemma:
            return parts
        whole = torch.stack([*parts.values()]).sum(0)
        scale = norm(module, whole, plus=plus) / whole
        return {name: part * scale for name, part in parts.items()}

    for layer, block in enumerate(model.layers[:last]):
        weight = block.self_attn.o_proj.weight.mT
        writes |= after(block.post_attention_layernorm, heads_of(seen, f"{layer}", weight, heads))
        mlp = {f"mlp {layer}": seen[f"mlp {layer}"][1]}
        writes |= after(getattr(block, "post_feedforward_layernorm", None), mlp)
    block = model.layers[last]
    cos, sin = model.rotary_emb(writes["embedding"], torch.arange(IDS.shape[1])[None])

    def turned(proj: Any, x: Tensor, head: int) -> Tensor:
        y = proj(norm(block.input_layernorm, x, plus=plus)).unflatten(-1, (-1, config.head_dim))
        half = y[:, head].chunk(2, -1)
        return y[:, head] * cos[0] + torch.cat((-half[1], half[0]), -1) * sin[0]

    def score(xq: Tensor, xk: Tensor) -> Tensor:
        group = (heads - 1) // (heads // config.num_key_value_heads)
        q = turned(block.self_attn.q_proj, xq, heads - 1)
        k = turned(block.self_attn.k_proj, xk, group)
        return contrast(q, k, block.self_attn.scaling, pair.ours.config.window(last) or 99)

    forward = forward_of(pair, IDS)
    ours = score_sources(forward, "decoder.self_attn", last, heads - 1, QUERY, KEY)
    agrees(ours, writes, writes, score)


def test_cross_attention_of_t5_in_hooks(tmp_path: Path) -> None:
    """The key's sources are the encoder's."""
    pair = open_pair(CASES["t5"], tmp_path).double()
    model, heads = pair.reference, pair.reference.config.num_heads
    target = torch.tensor([[0, 8, 12, 6, 10, 5]])
    modules: dict[str, Any] = {"enc.first": model.encoder.block[0], "first": model.decoder.block[0]}
    projections: dict[str, Any] = {}
    for stack, prefix in ((model.encoder, "enc."), (model.decoder, "")):
        for layer, block in enumerate(stack.block):
            projections[f"{prefix}{layer}"] = block.layer[0].SelfAttention.o
            modules[f"{prefix}mlp {layer}"] = block.layer[-1].DenseReluDense
    for layer, block in enumerate(model.decoder.block):
        projections[f"cross {layer}"] = block.layer[1].EncDecAttention.o
    seen = seen_by(model, modules | projections, input_ids=IDS, decoder_input_ids=target)
    last = len(model.decoder.block) - 1
    sides: list[Writes] = []
    for prefix, left_out in (("", {f"cross {last}", f"mlp {last}"}), ("enc.", set())):
        writes = {"embedding": seen[f"{prefix}first"][0]}
        for name in {*modules, *projections} - left_out:
            if name.startswith("enc.") != bool(prefix) or name.endswith("first"):
                continue
            own = {name: seen[name][1]}
            if name in projections:
                own = heads_of(seen, name, projections[name].weight.mT, heads)
            writes |= {part.removeprefix("enc."): write for part, write in own.items()}
        sides.append(writes)
    layer = model.decoder.block[last].layer[1]

    def score(xq: Tensor, xk: Tensor) -> Tensor:
        q = layer.EncDecAttention.q(norm(layer.layer_norm, xq)).unflatten(-1, (heads, -1))
        memory = norm(model.encoder.final_layer_norm, xk)
        k = layer.EncDecAttention.k(memory).unflatten(-1, (heads, -1))
        return contrast(q[:, 1], k[:, 1], 1.0)

    forward = forward_of(pair, IDS, target)
    ours = score_sources(forward, "decoder.cross_attn", last, 1, QUERY, KEY)
    agrees(ours, sides[0], sides[1], score)


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
    model, out = str(ROOT / "models/checkpoints/induction"), tmp_path / "why.json"
    opened, pick = opened_model.open_model("induction"), ["--head", "1.0", "--key", "1"]
    base = ["why", "--model", model, "--text", opened.example, "--out", str(out)]
    assert main([*base, *pick]) == 0
    made = json.loads(out.read_text())
    forward = run_text(opened, opened.example)
    ours = score_sources(forward, "decoder.self_attn", 1, 0, len(forward.target) - 1, 1)
    assert made["contrast"] == pytest.approx(ours.contrast)
    assert made["sum"] == pytest.approx(made["contrast"], rel=1e-4)
    for side in ("query", "key"):
        values = [one["value"] for one in made["sources"] if one["side"] == side]
        assert sum(values) + (made["position_bias"] or 0) == pytest.approx(ours.contrast, rel=1e-4)
    assert sources_in_words(ours, forward.columns) in capsys.readouterr().out
    for wrong, why in (
        (["--head", "9.0", "--key", "1"], "--head must be a layer from 0 to"),
        (["--head", "1.0", "--key", "99"], "--key must be from"),
        ([*pick, "--against", "2", "--plain"], "not both"),
        ([*pick, "--query", "0"], "The key is masked"),
    ):
        assert main([*base, *wrong]) == 2
        assert why in capsys.readouterr().err

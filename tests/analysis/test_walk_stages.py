"""Which stages a config has, and what is said of each: its shapes, its formula, its sentence."""

from __future__ import annotations

from typing import Any

import torch

from explorer import library, reading
from explorer.analysis.walk import stages_of
from explorer.analysis.walk_formulas import formula, sentence
from explorer.analysis.walk_line import shapes, sizes
from explorer.analysis.walk_view import cut, row_stack, tokens_of
from explorer.reading import Reading
from models import Transformer, trace
from models.presets import notebook_tutorial, paper, web_tutorial_classifier
from tests.analysis.test_walk import walked

PAPER = paper(11, 11, 8, 2, 1, 8)


def test_what_is_not_scaled_is_not_called_scaled() -> None:
    """T5 scales nothing: neither its formula nor its sentence may say so."""
    scores = next(stage for stage in stages_of(PAPER) if stage.kind == "scores")
    unscaled = PAPER.replace(attention_scale=1.0)
    assert sentence(scores, PAPER).startswith("Scaled")
    assert "scales nothing" in sentence(scores, unscaled)
    assert formula(scores, unscaled) == r"s_{ij} = q_i \cdot k_j"


def test_the_norm_of_heads_names_what_is_normed_and_the_models_own_number() -> None:
    for positions in ("sinusoidal", "rotary"):
        made = PAPER.replace(qk_norm=True, norm_eps=1e-6, positions=positions)
        normed = [stage for stage in stages_of(made) if stage.kind == "head norm"]
        letters = [formula(stage, made).split()[1] for stage in normed]
        assert letters == ["q", "k"] * (len(normed) // 2) != []
        for stage, letter in zip(normed, letters, strict=True):
            size = rf"\sqrt{{\tfrac{{1}}{{w}}\sum {letter}_i^2 + 10^{{-6}}}}"
            assert rf"\frac{{{letter}}}{{{size}}}" in formula(stage, made)


CLASSES = ("pooled", "class hidden", "class logits")


def test_the_shapes_are_those_of_the_values(found: Reading) -> None:
    walk = walked(found)
    for stage in walk.stages.values():
        tokens = len(tokens_of(walk, stage.stack))
        keys = len(found.source) if stage.branch == "cross_attn" else tokens
        shape = shapes(stage, sizes(found.config, 1, tokens, len(found.source), keys))[-1]
        own = list(walk[stage.name].shape)
        is_class = stage.kind == "probabilities" and found.config.head == "classifier"
        shape = shape if stage.kind in CLASSES or is_class else shape[1:]
        assert own == (shape[1:] if stage.per_head else shape), stage.name
        assert row_stack(stage) in found.config.stacks
        assert formula(stage, found.config)
        assert sentence(stage, found.config)


def test_only_stages_that_the_model_has() -> None:
    plain = {stage.name for stage in stages_of(PAPER)}
    assert not {name for name in plain if name.endswith((".norm", ".bias", "q_proj", "final"))}
    assert "decoder.0.cross_attn.scores" in plain
    assert "encoder.0.cross_attn.scores" not in plain
    gated = notebook_tutorial().replace(gated=True, positions="rotary", norm_position="sandwich")
    more = {stage.name for stage in stages_of(gated)}
    assert {"encoder.0.mlp.gate", "encoder.0.self_attn.q_proj", "encoder.0.mlp.out_norm"} <= more
    assert "encoder.pos_embed" not in more
    classes = [stage.name for stage in stages_of(web_tutorial_classifier())]
    assert classes[-4:] == ["head.pooled", "head.hidden", "logits", "probabilities"]


S2 = {
    "encoder.embed": [[32, 10], [32, 10, 512]],
    "encoder.pos_embed": [[32, 10], [32, 10, 512]],
    "encoder.0.self_attn.q": [[32, 10, 512], [32, 10, 8, 64], [32, 8, 10, 64]],
    "encoder.0.self_attn.scores": [[32, 8, 10, 10]],
    "encoder.0.self_attn.weights": [[32, 8, 10, 10]],
    "encoder.0.self_attn.head_out": [[32, 8, 10, 64]],
    "encoder.0.self_attn.concat": [[32, 8, 10, 64], [32, 10, 8, 64], [32, 10, 512]],
    "encoder.0.self_attn.out": [[32, 10, 512]],
    "encoder.0.mlp.hidden": [[32, 10, 2048]],
}


def test_the_shapes_of_the_notebook_tutorial() -> None:
    """32 sentences of 10 tokens, d_model 512, 8 heads of 64; as said and as a pass has them."""
    config = notebook_tutorial(src_vocab_size=100, num_layers=1)
    known = sizes(config, 32, 10, 10, 10)
    said = {stage.name: shapes(stage, known) for stage in stages_of(config)}
    assert {name: said[name] for name in S2} == S2
    ids = torch.randint(0, 11, (32, 10), generator=torch.Generator().manual_seed(0))
    seen = trace(Transformer(config).eval(), ids, ids)
    for stage in stages_of(config):
        if stage.site:
            assert list(seen[stage.site].shape) == said[stage.name][-1], stage.name


def formulas(config: Any) -> dict[str, str]:
    return {stage.name: formula(stage, config) for stage in stages_of(config)}


def test_a_value_keeps_its_symbol_where_it_is_read() -> None:
    """The last norm makes m in the encoder and y before the logits; post-norm norms x itself."""
    normed = formulas(PAPER.replace(norm_position="pre", final_norm=True))
    assert normed["encoder.final"].startswith("m =")
    assert normed["decoder.0.cross_attn.k"].startswith(r"K = m\,W_K")
    assert "of the encoder" not in normed["decoder.0.cross_attn.k"]
    assert normed["decoder.0.cross_attn.q"].startswith(r"Q = y\,W_Q")
    assert normed["logits"].startswith(r"\ell = y\,")
    plain = formulas(PAPER)
    assert plain["encoder.0.resid_post"].startswith(r"x \leftarrow")
    assert plain["decoder.0.cross_attn.k"].endswith(r"m = x \text{ of the encoder}")
    assert plain["logits"].startswith(r"\ell = x\,")
    classes = formulas(web_tutorial_classifier())
    assert classes["head.pooled"].startswith("c =")
    assert "c" in classes["head.hidden"]
    assert classes["logits"].startswith(r"\ell = h\,")


def test_every_row_of_the_answers_has_its_own_best_among_the_columns() -> None:
    opened = library.open_model("translation")
    walk = walked(reading.read(opened, opened.example))
    values = walk["probabilities"]
    for row in range(len(values)):
        drawn = cut(walk, walk.stages["probabilities"], row, 0, str)
        best = values[torch.tensor(drawn.rows)].argmax(-1).tolist()
        assert set(best) <= set(drawn.columns)
        assert drawn.columns[:2] == tuple(values[row].topk(2).indices.tolist())
        assert len(set(drawn.columns)) == len(drawn.columns) <= 16

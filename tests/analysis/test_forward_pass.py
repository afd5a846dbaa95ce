"""The stages of a pass: each is the pass's own value, follows from those before, and is said."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.analysis.forward_pass.formulas import formula, sentence
from explorer.analysis.forward_pass.pass_stages import stages_of
from explorer.analysis.forward_pass.position_formulas import buckets, frequencies
from explorer.analysis.forward_pass.recompute import difference
from explorer.analysis.forward_pass.stage_line import shapes, sizes
from explorer.analysis.forward_pass.stage_values import Walk, recorded
from explorer.analysis.forward_pass.stage_view import cut, row_stack, tokens_of
from explorer.analysis.forward_pass.substitution import equation, in_numbers
from explorer.analysis.forward_pass.sum_terms import as_sum, in_latex
from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.text import word_tokenizer
from explorer.text.special import CLASSIFIER, SOURCE
from models import Transformer, TransformerConfig, positional, trace
from models.positional import AlibiPositions, RelativePositions, RotaryPositions
from models.presets import notebook_tutorial, paper, web_tutorial_classifier
from models.rope_scaling import RopeScaling
from models.trace import Trace
from tests import zoo
from tests.analysis.conftest import TEXT
from tests.models.building import shake
from tests.shelf import WORDS, put

TRAINED = ("translation", "shakespeare", "negation", "reviews", "reverse", "induction")
EXACT = 1e-6


def walked(of: ForwardPass, head: int = 0) -> Walk:
    @lru_cache
    def record(sites: tuple[str, ...]) -> Trace:
        return recorded(of, sites)

    return Walk(of, head, len(of.target or of.source) - 1, record)


def worst(of: ForwardPass) -> float:
    """The largest difference of any stage from its formula, of the first and the last head."""
    heads = {0, of.config.n_heads - 1}
    walks = [walked(of, head) for head in heads]
    return max(difference(walk, stage) for walk in walks for stage in walk.stages.values())


def corners(value: Tensor) -> set[tuple[int, int]]:
    """The first and the last cell of a matrix."""
    return {(0, 0), (len(value) - 1, value.shape[-1] - 1)}


def every_cell_is_opened(walk: Walk) -> None:
    """As a sum or as an equation, not both; a row that sees no key has no shares to show."""
    for stage in walk.stages.values():
        value = walk[stage.name].double()
        for row, column in corners(value) if value.dim() == 2 else ():
            made = in_numbers(walk, stage, row, column)
            summed = as_sum(walk, stage, row, column)
            if made is None and summed is None:
                blind = stage.kind == "weights" and not walk.mask(stage)[row].any()
                assert blind or isinstance(walk.module(stage), nn.Identity), stage.name
            if made is not None:
                shown = float(value[row, column])
                assert made.total == pytest.approx(shown, rel=1e-6, abs=1e-6), stage.name
                assert "=" in equation(made, shown)


# ---- every stage -----------------------------------------------------------------------


def test_every_stage_follows_from_those_before_it_and_every_number_is_opened(
    found: ForwardPass,
) -> None:
    assert worst(found) <= EXACT
    every_cell_is_opened(walked(found, head=found.config.n_heads - 1))


def test_of_two_stacks_with_segments_of_their_own_too(tmp_path: Path) -> None:
    words = word_tokenizer(WORDS, SOURCE)
    put(tmp_path, "two", words, "the cat", kind="encoder-decoder", n_segments=2)
    opened = opened_model.opened_from(tmp_path / "two", "two")
    shake(opened.model.double(), by=0.4)
    of = forward_pass.run_batch_uncached(opened, ("the black cat",))[0]
    assert len(of.source) != len(of.target)
    assert worst(of) <= EXACT
    every_cell_is_opened(walked(of))


def test_of_published_models_and_a_pair_of_texts_too(published: Path, tmp_path: Path) -> None:
    zoo.classifier(tmp_path / "classifier")
    for folder in (published / "bert", published / "gpt2", published / "t5", *tmp_path.iterdir()):
        opened = opened_model.opened_from(folder, folder.name)
        opened.model.double()
        text = "5 17 3" if folder.name == "gpt2" else "the cat was good"
        of = forward_pass.run_batch_uncached(opened, (text,))[0]
        assert worst(of) <= EXACT, folder.name
        every_cell_is_opened(walked(of))
    opened = opened_model.opened_from(published / "bert", "bert")
    pair = forward_pass.run_text(opened, "the cat was good", "the dog")
    assert set(walked(pair).segments("encoder").tolist()) == {0, 1}
    assert worst(pair) <= EXACT
    every_cell_is_opened(walked(pair))


def test_of_trained_models_as_they_are() -> None:
    """In float32, as on the screen."""
    for name in TRAINED:
        opened = opened_model.open_model(name)
        assert worst(forward_pass.run_text(opened, opened.example)) <= EXACT, name


def test_a_planted_mistake_is_seen_where_it_is(found: ForwardPass) -> None:
    """A value of the pass that is another: its own stage, and those that read it, say so."""
    stack = found.config.stacks[0]
    site = f"{stack}.0.self_attn.v"
    found.trace.values[site] = found.trace[site] * 1.1
    walk = walked(found)
    assert difference(walk, walk.stages[site]) > 1e-2
    assert difference(walk, walk.stages[f"{stack}.0.self_attn.head_out"]) > 1e-2
    assert difference(walk, walk.stages[f"{stack}.0.self_attn.k"]) <= EXACT


def hooked(of: ForwardPass, walk: Walk) -> dict[str, Tensor]:
    """What the modules that stages name really gave in a pass, by the names of the modules."""
    seen: dict[str, Tensor] = {}
    modules = dict(of.trace.model.named_modules())
    handles = []
    for stage in walk.stages.values():
        if stage.module and not stage.site and stage.module in modules:

            def keep(_: Any, __: Any, output: Tensor, name: str = stage.module) -> None:
                seen[name] = output.detach()

            handles.append(modules[stage.module].register_forward_hook(keep))
    recorded(of, ("none",))
    for handle in handles:
        handle.remove()
    return seen


def test_every_value_is_what_the_pass_had_there(found: ForwardPass) -> None:
    """Of a site that is watched, or of the module itself where the trace shows nothing."""
    walk = walked(found, head=1 % found.config.n_heads)
    everything, hooks = recorded(found, ("*",)), hooked(found, walk)
    for stage in walk.stages.values():
        if stage.kind in ("logits", "class logits"):
            continue
        if stage.site:
            seen = everything[stage.site][0]
        elif stage.module in hooks:
            seen = hooks[stage.module][0]
        else:
            continue
        if stage.kind == "projected" and not stage.site:
            seen = seen.unflatten(-1, (-1, found.config.head_width)).transpose(0, 1)
        if stage.kind == "projected" or stage.per_head:
            seen = seen[min(walk.head_of(stage, len(seen)), len(seen) - 1)]
        torch.testing.assert_close(walk[stage.name], seen, msg=stage.name)
    given, mine = found.trace["logits"][0], walk["logits"]
    torch.testing.assert_close(mine[-len(given) :] if given.dim() > 1 else mine[0], given)
    torch.testing.assert_close(walk["probabilities"].sum(-1), torch.ones_like(mine[:, 0]))


def test_a_number_is_the_sum_of_its_terms(found: ForwardPass) -> None:
    """The largest products, the rest and the bias are the number that the pass had."""
    walk, kinds = walked(found, head=found.config.n_heads - 1), set[str]()
    for stage in walk.stages.values():
        value = walk[stage.name].double()
        for row, column in corners(value) if value.dim() == 2 else ():
            made = as_sum(walk, stage, row, column)
            if made is None:
                continue
            kinds.add(stage.kind)
            assert made.total == pytest.approx(float(value[row, column]), rel=1e-6, abs=1e-6)
            of_terms = [abs(x * w) for _, x, w in made.terms]
            assert of_terms == sorted(of_terms, reverse=True)
            assert "=" in in_latex(made, stage, walk.config, made.total)
    assert {"linear", "projected", "products", "head out"} <= kinds


# ---- what it costs ---------------------------------------------------------------------


class Largest(TorchDispatchMode):
    """The most numbers of 64 bits that anything computed within had."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, list | tuple) else [made]:
            if isinstance(each, Tensor) and each.dtype == torch.float64:
                self.most = max(self.most, each.numel())
        return made


@pytest.fixture
def shakespeare() -> Opened:
    return opened_model.open_model("shakespeare")


def test_the_check_of_one_row_never_holds_the_vocabulary_matrix(shakespeare: Opened) -> None:
    """Once more for a token: its own row of the embedding, and the options that are drawn."""
    walk = walked(forward_pass.run_text(shakespeare, shakespeare.example))
    config, stack = shakespeare.config, shakespeare.config.stacks[0]
    for name, columns in ((f"{stack}.embed", slice(None)), ("logits", [3, 1])):
        walk[name]
        with Largest() as seen:
            assert difference(walk, walk.stages[name], slice(0, 1), columns) <= EXACT
        assert 0 < seen.most < config.vocab_size * config.d_model / 4, name


def test_few_answers_are_made_where_the_vocabulary_is_large(
    found: ForwardPass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.analysis.forward_pass.stage_values.MOST_LOGITS", 10)
    walk = walked(found)
    assert walk["logits"].shape[0] == 1
    assert difference(walk, walk.stages["logits"]) <= EXACT
    assert difference(walk, walk.stages["probabilities"]) <= EXACT


def test_nothing_grows_with_layers_times_heads_times_tokens_squared(shakespeare: Opened) -> None:
    """What is kept of a walk through every stage: streams and heads' outputs, block by block."""
    of = forward_pass.run_text(shakespeare, "to be or not to be " * 9)
    kept: dict[tuple[str, ...], Trace] = {}

    def record(sites: tuple[str, ...]) -> Trace:
        if sites not in kept:
            kept[sites] = recorded(of, sites)
        return kept[sites]

    for name in Walk(of, 0, 0, record).stages:
        Walk(of, 0, 0, record)[name]
    tokens = len(of.target)
    assert tokens > 50
    for made in kept.values():
        assert all(value.shape[-2:] != (tokens, tokens) for value in made.values.values())


# ---- positions by their own formulas ---------------------------------------------------


def test_frequencies_and_buckets_are_those_of_the_model() -> None:
    for kind in (None, "linear", "llama3", "yarn"):
        scaling = None if kind is None else RopeScaling(kind=kind, factor=4.0)
        for width, theta in ((2, 10_000.0), (24, 500_000.0), (128, 1e6)):
            config = TransformerConfig(
                positions="rotary", d_head=width, rope_theta=theta, rope_scaling=scaling
            )
            theirs = RotaryPositions(width, theta, "halves", scaling).frequencies()
            assert torch.equal(frequencies(config), theirs), (kind, width)
    offsets = torch.arange(-2_000, 2_001)
    for count, most in ((4, 3), (8, 128), (9, 20), (32, 128), (32, 1_000)):
        config = TransformerConfig(positions="relative", n_buckets=count, max_distance=most)
        for causal in (True, False):
            model = RelativePositions(2, count, most, causal)
            assert torch.equal(buckets(offsets, config, causal), model.buckets(offsets))


def larger(gives: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: gives(*inputs) * 1.1


def backwards(gives: Callable[..., Any]) -> Callable[..., Any]:
    return lambda of, offsets: gives(of, -offsets)


def test_a_mistake_in_the_models_positions_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scheme, whose, name, mistaken, stage in (
        ("sinusoidal", positional, "sinusoids", larger, "pos_embed"),
        ("rotary", RotaryPositions, "frequencies", larger, "0.self_attn.q"),
        ("alibi", AlibiPositions, "slopes", larger, "0.self_attn.bias"),
        ("relative", RelativePositions, "buckets", backwards, "0.self_attn.bias"),
    ):
        words = word_tokenizer(WORDS, CLASSIFIER)
        put(tmp_path, scheme, words, "the cat", kind="encoder", positions=scheme)
        for planted in (False, True):
            with monkeypatch.context() as patch:
                if planted:
                    patch.setattr(whose, name, mistaken(getattr(whose, name)))
                opened = opened_model.opened_from(tmp_path / scheme, scheme)
                walk = walked(forward_pass.run_batch_uncached(opened, (TEXT,))[0])
                found = difference(walk, walk.stages[f"encoder.{stage}"])
            assert found > 1e-3 if planted else found <= EXACT, scheme


# ---- what is said of a stage ---------------------------------------------------------

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


def test_the_shapes_are_those_of_the_values(found: ForwardPass) -> None:
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
    opened = opened_model.open_model("translation")
    walk = walked(forward_pass.run_text(opened, opened.example))
    values = walk["probabilities"]
    for row in range(len(values)):
        drawn = cut(walk, walk.stages["probabilities"], row, 0, str)
        best = values[torch.tensor(drawn.rows)].argmax(-1).tolist()
        assert set(best) <= set(drawn.columns)
        assert drawn.columns[:2] == tuple(values[row].topk(2).indices.tolist())
        assert len(set(drawn.columns)) == len(drawn.columns) <= 16

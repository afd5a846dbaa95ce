"""The parameter ledger: every tensor once, every sum right, every formula made of config sizes."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from explorer.catalog import parameters
from explorer.catalog.parameters import ParameterNode, parameter_tree, parameter_tree_of, tree_lines
from models import Transformer, TransformerConfig
from models.presets import PRESETS

PLAIN = TransformerConfig()
PROMISED = {
    "paper": 63_082_496,
    "repository README": 93_322_496,
    "lecture handout": 93_322_496,
    "notebook tutorial": 44_127_755,
    "web tutorial, encoder": 520_064,
    "web tutorial, classifier": 389_218,
}
CHANGES: list[dict[str, Any]] = [
    {"kind": "encoder", "n_segments": 2, "embedding_norm": True},
    {"kind": "encoder", "positions": "learned", "position_offset": 2},
    {"positions": "relative", "norm": "rms"},
    {"kind": "encoder", "head": "masked-language-model", "tie_embeddings": True},
    {"kind": "encoder", "head": "classifier", "d_classifier": 32, "classifier_bias": False},
    {"kind": "encoder-decoder", "share_embeddings": True, "tie_embeddings": True},
    {"kind": "encoder-decoder", "src_vocab_size": 99, "n_encoder_layers": 3, "head": "none"},
    {"kind": "encoder-decoder", "d_ff_encoder": 300},
    {"norm_position": "sandwich", "qk_norm": True, "n_kv_heads": 2, "d_head": 24},
    {"sink_logit": True, "gated_attention": True},
    {"parallel": True, "shared_norm": True, "gated": True, "bias": False, "qkv_bias": False},
    {"d_ff": 0, "positions": "none", "final_norm": False, "head_bias": False},
]


def leaves(node: ParameterNode) -> Iterator[ParameterNode]:
    return (part for _, part in tree_lines(node) if not part.children)


def named(root: ParameterNode, *path: str) -> ParameterNode:
    for name in path:
        root = next(child for child in root.children if child.name == name)
    return root


def test_the_sums_that_the_documents_print() -> None:
    for name, count in PROMISED.items():
        assert parameter_tree_of(PRESETS[name]).count == count, name
    encoder = named(parameter_tree_of(PRESETS["web tutorial, encoder"]), "encoder")
    words = named(encoder, "token embedding")
    layers, norm = named(encoder, "4 layers, each"), named(encoder, "final norm")
    assert (words.count, layers.times, layers.size, norm.count) == (320_000, 4, 49_984, 128)
    handout = named(parameter_tree_of(PRESETS["lecture handout"]), "encoder", "6 layers, each")
    assert named(handout, "self-attention").numbers == "4 × 262,656"
    assert named(handout, "feed-forward").numbers == "1,050,624 + 1,049,088"
    paper = named(parameter_tree_of(PRESETS["paper"]), "encoder", "6 layers, each")
    up = named(paper, "feed-forward", "up projection")
    assert (up.symbols, up.numbers) == ("d_model × d_ff + d_ff", "512 × 2,048 + 2,048")
    endless = PLAIN.replace(vocab_size=40_000, d_model=100_000, d_ff=400_000, max_len=8)
    assert parameter_tree_of(endless).count > 200e9, "what is not there takes no memory"


def test_every_parameter_is_counted_once_by_a_formula_of_sizes(subtests: pytest.Subtests) -> None:
    for changes in CHANGES:
        with subtests.test(changes=changes):
            model = Transformer(PLAIN.replace(**changes))
            found = parameter_tree(model)
            assert found.count == model.n_parameters == parameter_tree_of(model.config).count
            for _, part in tree_lines(found):
                if part.children:
                    assert part.size == sum(child.count for child in part.children)
                else:
                    terms = (math.prod(size for _, size in term) for term in part.terms)
                    assert part.size == sum(terms) == worth(part.symbols, model.config)
                    assert bool(part.size) != bool(part.note)
            words = {word for part in leaves(found) for word in part.name.split()}
            names = {name for name in parameters.PARAMETER_NAMES if "_" in name}
            assert not words & names, "words, not names"


def worth(symbols: str, config: TransformerConfig) -> int:
    """What `d_model × d_ff + d_ff` or `(max_len + 2) × d_model` comes to in this config."""

    def size(found: re.Match[str]) -> str:
        name = found[0]
        return str(config.head_width if name == "d_head" else getattr(config, name))

    return int(eval(re.sub(r"[a-z_]+", size, symbols).replace("×", "*") or "0"))


def test_what_is_used_twice_is_said_and_counted_once() -> None:
    config = PLAIN.replace(kind="encoder-decoder", share_embeddings=True, tie_embeddings=True)
    found = parameter_tree_of(config)
    assert named(found, "decoder", "token embedding").note == (
        "shared with the token embedding of the encoder, which is counted there"
    )
    assert named(found, "head", "unembedding").note.startswith("tied to the token embedding")
    model = Transformer(PLAIN.replace(n_layers=2))
    first, second = (model.get_submodule(f"decoder.blocks.{i}.mlp.up_proj") for i in (0, 1))
    second.weight = first.weight
    assert parameter_tree(model).count == model.n_parameters
    layer = named(parameter_tree(model), "decoder", "layers", "layer 1")
    said = [(part.count, bool(part.note)) for part in leaves(layer) if "up" in part.name]
    assert said == [(0, True), (PLAIN.d_ff, False)]


def test_layers_that_differ_stand_apart() -> None:
    model = Transformer(PLAIN.replace(n_layers=4))
    model.last_stack.blocks[2].mlp.up_proj.bias = None  # type: ignore[union-attr]
    found = named(parameter_tree(model), "decoder", "layers")
    assert [part.name for part in found.children] == ["layers 0 to 1, each", "layer 2", "layer 3"]
    assert parameter_tree(model).count == model.n_parameters

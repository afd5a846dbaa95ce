"""The configs of the paper and of the documents that this project grew from.

Another size of one is `PAPER.replace(d_model=…)`.
"""

from typing import Any

from models.config import GenerationConfig, TrainConfig, TransformerConfig

REPOSITORY_README = TransformerConfig(
    kind="encoder-decoder",
    vocab_size=32_000,
    src_vocab_size=32_000,
    d_model=512,
    n_heads=8,
    n_layers=6,
    d_ff=2048,
    dropout=0.1,
    max_len=5000,
    norm_position="post",
    final_norm=False,
)
"""Encoder-decoder: post-norm, sinusoids, untied, biased, no last norm. 93,322,496 parameters."""

PAPER = REPOSITORY_README.replace(
    vocab_size=37_000,
    src_vocab_size=None,
    share_embeddings=True,
    tie_embeddings=True,
    head_bias=False,
    activation_dropout=0.0,
)
"""The base model: one matrix embeds both languages and scores the output, without a bias.

63,082,496 parameters; table 3 rounds to 65 million, for its own vocabulary. Dropout is on the
sum of embeddings and positions and on the output of every sub-layer, not inside of one.
Source: Attention Is All You Need, sections 3.4, 5.4 and 6.1, table 3.
"""

PAPER_TRAINING = TrainConfig(
    steps=100_000,
    lr=(512 * 4000) ** -0.5,  # the maximum of d_model^−0.5 · min(step^−0.5, step · warmup^−1.5)
    warmup=4000,
    schedule="inverse square root",
    optimizer="adam",
    beta2=0.98,
    eps=1e-9,
    weight_decay=0.0,
    clip=0.0,
    label_smoothing=0.1,
)
"""How the base model was trained, but for its batches of 25,000 tokens. Sections 5.2 to 5.4."""

LECTURE_HANDOUT = REPOSITORY_README.replace(scale_embedding=False, dropout=0.0)
"""The handout's parts together; each attention layer has its 1,050,624 parameters."""

NOTEBOOK_TUTORIAL = REPOSITORY_README.replace(
    vocab_size=11,
    src_vocab_size=11,
    dropout=0.2,
    max_len=12,
    qkv_bias=False,
    bos_id=0,
    generation=GenerationConfig(eos_ids=(1,)),
)
"""The model as it was meant: each head with projections of its own. 44,127,755 parameters."""

WEB_TUTORIAL_ENCODER = TransformerConfig(
    kind="encoder",
    head="none",
    vocab_size=5000,
    n_heads=8,
    n_layers=4,
    dropout=0.1,
    norm_position="post",
)
"""Post-norm with a last norm. 520,064 parameters."""

WEB_TUTORIAL_CLASSIFIER = WEB_TUTORIAL_ENCODER.replace(
    head="classifier", n_layers=2, d_ff=128, n_classes=2, d_classifier=32
)
"""A classifier of the first token. 389,218 parameters."""

PRESETS = {
    "paper": PAPER,
    "repository README": REPOSITORY_README,
    "lecture handout": LECTURE_HANDOUT,
    "notebook tutorial": NOTEBOOK_TUTORIAL,
    "web tutorial, encoder": WEB_TUTORIAL_ENCODER,
    "web tutorial, classifier": WEB_TUTORIAL_CLASSIFIER,
}

SAME_NAMES = ("src_vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "dropout", "max_len")
README_SIZES = {name: name for name in SAME_NAMES} | {"tgt_vocab_size": "vocab_size"}
NOTEBOOK_SIZES = {
    "src_vocab_size": "src_vocab_size",
    "target_vocab_size": "vocab_size",
    "embed_dim": "d_model",
    "n_heads": "n_heads",
    "num_layers": "n_layers",
    "expansion_factor": "d_ff",
    "seq_length": "max_len",
}
"""What `TransformerConfig` calls the sizes of these documents; the factor is times the width."""


def preset_of(**sizes: Any) -> TransformerConfig:
    """The model of the repository README or the notebook tutorial, with sizes by its names.

    TypeError where neither document has all of these names.
    """
    if "expansion_factor" in sizes or "embed_dim" in sizes:
        width = sizes.get("embed_dim", NOTEBOOK_TUTORIAL.d_model)
        sizes["expansion_factor"] = sizes.get("expansion_factor", 4) * width
    for preset, names in ((REPOSITORY_README, README_SIZES), (NOTEBOOK_TUTORIAL, NOTEBOOK_SIZES)):
        if sizes.keys() <= names.keys():
            return preset.replace(**{names[name]: size for name, size in sizes.items()})
    raise TypeError(f"No document has a Transformer of these sizes: {', '.join(sorted(sizes))}.")

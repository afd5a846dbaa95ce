"""The configs of the paper and of the documents that this project grew from."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from models.config import GenerationConfig, TransformerConfig


def paper(vocab_size: int = 37_000, **sizes: Any) -> TransformerConfig:
    """The base model of the paper: one matrix embeds both languages and scores the output.

    `sizes` are those of `repository_readme`, and without any as there: d_model 512, 8 heads,
    6 layers, d_ff 2048.

    63,082,496 parameters as called here; table 3 rounds its own vocabulary's to 65 million.
    The scores have no bias. Dropped are the embeddings with their positions and the output of
    every sub-layer, and nothing inside of one.
    Source: Attention Is All You Need, sections 3.4, 5.4 and 6.1, table 3.
    """
    return repository_readme(tgt_vocab_size=vocab_size, **sizes).replace(
        src_vocab_size=None,
        share_embeddings=True,
        tie_embeddings=True,
        head_bias=False,
        activation_dropout=0.0,
    )


def repository_readme(
    src_vocab_size: int = 32_000,
    tgt_vocab_size: int = 32_000,
    d_model: int = 512,
    n_heads: int = 8,
    n_layers: int = 6,
    d_ff: int = 2048,
    dropout: float = 0.1,
    max_len: int = 5000,
) -> TransformerConfig:
    """The repository README's encoder-decoder: post-norm, sinusoids, untied, biased, no last norm.

    93,322,496 parameters as called here.
    """
    return TransformerConfig(
        kind="encoder-decoder",
        vocab_size=tgt_vocab_size,
        src_vocab_size=src_vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        d_ff=d_ff,
        dropout=dropout,
        max_len=max_len,
        norm_position="post",
        final_norm=False,
    )


def lecture_handout(vocab_size: int = 32_000) -> TransformerConfig:
    """The lecture handout's parts put together: embeddings not scaled, no dropout.

    Each attention layer has the handout's 1,050,624 parameters.
    """
    readme = repository_readme(src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, dropout=0.0)
    return readme.replace(scale_embedding=False)


def notebook_tutorial(
    embed_dim: int = 512,
    src_vocab_size: int = 11,
    target_vocab_size: int = 11,
    seq_length: int = 12,
    num_layers: int = 6,
    expansion_factor: int = 4,
    n_heads: int = 8,
) -> TransformerConfig:
    """The notebook tutorial's model as it was meant: each head with projections of its own.

    44,127,755 parameters as called here. Token 0 starts a sequence and token 1 ends it.
    """
    return repository_readme(
        src_vocab_size=src_vocab_size,
        tgt_vocab_size=target_vocab_size,
        d_model=embed_dim,
        n_heads=n_heads,
        n_layers=num_layers,
        d_ff=expansion_factor * embed_dim,
        dropout=0.2,
        max_len=seq_length,
    ).replace(qkv_bias=False, bos_id=0, generation=GenerationConfig(eos_ids=(1,)))


def web_tutorial_encoder(
    vocab_size: int = 5000,
    d_model: int = 64,
    n_heads: int = 8,
    n_layers: int = 4,
    d_ff: int = 256,
    max_len: int = 512,
    dropout: float = 0.1,
) -> TransformerConfig:
    """The web tutorial's encoder: post-norm with a last norm. 520,064 parameters as called here."""
    return TransformerConfig(
        kind="encoder",
        head="none",
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        d_ff=d_ff,
        max_len=max_len,
        dropout=dropout,
        norm_position="post",
    )


def web_tutorial_classifier(
    vocab_size: int = 5000,
    d_model: int = 64,
    n_heads: int = 8,
    n_layers: int = 2,
    d_ff: int = 128,
    n_classes: int = 2,
) -> TransformerConfig:
    """The web tutorial's classifier of the first token. 389,218 parameters as called here."""
    encoder = web_tutorial_encoder(
        vocab_size=vocab_size, d_model=d_model, n_heads=n_heads, n_layers=n_layers, d_ff=d_ff
    )
    return encoder.replace(head="classifier", n_classes=n_classes, d_classifier=d_model // 2)


def preset_of(**sizes: Any) -> TransformerConfig:
    """The model of the document that calls its sizes by these names.

    That is the repository README, or the notebook tutorial. TypeError where neither does.
    """
    for preset in (repository_readme, notebook_tutorial):
        if sizes.keys() <= signature(preset).parameters.keys():
            return preset(**sizes)
    raise TypeError(f"No document has a Transformer of these sizes: {', '.join(sorted(sizes))}.")


PRESETS: dict[str, Callable[..., TransformerConfig]] = {
    "paper": paper,
    "repository README": repository_readme,
    "lecture handout": lecture_handout,
    "notebook tutorial": notebook_tutorial,
    "web tutorial, encoder": web_tutorial_encoder,
    "web tutorial, classifier": web_tutorial_classifier,
}

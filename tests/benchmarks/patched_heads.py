"""Every head of a model of SmolLM2's sizes patched from another text, beside a pass for each.

Its weights are random: what is measured is time.
"""

from collections.abc import Iterator

from explorer.analysis.ablation import RecordedPass
from explorer.analysis.patching import PATCHED_SITES, patch_every_head
from models import Transformer, TransformerConfig, trace
from tests.benchmarks.measuring import Row, compared, timed
from tests.benchmarks.published import PART, ids, looked


def every_head_patched() -> Iterator[Row]:
    """Two texts of 14 tokens that part at the tenth, SmolLM2's sizes: one pass for each head."""
    model = small_llama()
    clean, corrupted = ids(14), ids(14)
    corrupted[0, 9] += 1
    base = RecordedPass(looked(model, clean), (clean,), 13, from_position=9)
    layers, heads = model.config.n_layers, model.config.n_heads
    other = trace(model, corrupted, sites=PATCHED_SITES, read_at=slice(-1, None))

    def one_by_one() -> None:
        for _ in range(layers * heads):
            trace(model, clean, sites=("logits",), read_at=slice(-1, None))

    def at_once() -> None:
        list(patch_every_head(base, other, PART, layers))

    what = f"{layers * heads} heads patched exactly, SmolLM2's sizes, 14 tokens"
    yield compared(what, timed(at_once, one_by_one, rounds=1), "of one pass for each", 0.5)


def small_llama() -> Transformer:
    """SmolLM2-135M with random weights."""
    return Transformer(
        TransformerConfig(
            vocab_size=49_152,
            d_model=576,
            n_layers=30,
            n_heads=9,
            n_kv_heads=3,
            d_ff=1536,
            max_len=2048,
            positions="rotary",
            norm="rms",
            activation="silu",
            gated=True,
            bias=False,
            qkv_bias=False,
            tie_embeddings=True,
        )
    ).eval()

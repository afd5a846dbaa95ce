"""The names that the documents give the parts, with their arguments.

Each is the part of this core that it stands for, so their calls run as they are written;
where two define one name, it takes the arguments of both. Of the repository's files, `attention`,
`encoder`, `decoder`, `positional`, `feed_forward`, `transformer` and `masking` are modules of
`models` under these names. Its `preprocessing` is `explorer.text`, which makes token IDs of texts,
and `explorer.tasks`, which makes batches of these; its `train.py` and `inference.py` are the
commands `train` and `generate` of `python -m explorer`.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor, nn

from models import attention, feed_forward, positional, presets
from models import model as core
from models.block import StackContext
from models.generation import check_prompt
from models.masking import keep_of
from models.model import build_block
from models.shapes import Ids, Keys, Queries, Scores, SourceKeep, Stream
from models.tap import NO_TAP, Tap
from models.transformer import EVERYWHERE, evaluating

DocumentMask = Bool[Tensor, "..."] | Num[Tensor, "..."]
"""0 or False where a query may not attend to a key; of any shape that broadcasts to the scores."""


def scaled_dot_product_attention(
    q: Queries, k: Keys, v: Keys, mask: DocumentMask | None = None
) -> tuple[Queries, Scores]:
    """Weighted sum of the values, and the weights. A fully masked query gets zeros."""
    return attention.scaled_dot_product_attention(q, k, v, _allowed(mask))


def _allowed(mask: DocumentMask | None) -> Bool[Tensor, "#b #h #q #k"] | None:
    """The mask in booleans and four dimensions, also of floats, which the core refuses."""
    if mask is None:
        return None
    return mask.bool().reshape((1,) * (4 - mask.dim()) + mask.shape)


class DocumentPositions(positional.PositionalEncoding):
    """Adds sinusoids to x, with dropout of the sum; the handout has none."""

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0) -> None:
        super().__init__(d_model, max_len)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Stream) -> Stream:
        return self.dropout(super().forward(x))


class DocumentAttention(attention.MultiHeadAttention):
    """Called with x alone (the handout), or with the inputs of queries, keys and values."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads)

    def forward(  # type: ignore[override]
        self,
        query: Stream,
        key: Float[Tensor, "b k d"] | None = None,
        value: Float[Tensor, "b k d"] | None = None,
        mask: DocumentMask | None = None,
    ) -> Stream:
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        out, _ = scaled_dot_product_attention(self.split(q), self.split(k), self.split(v), mask)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class InputEmbedding(nn.Embedding):
    """Token vectors times √d_model: (b, t) -> (b, t, d)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__(vocab_size, d_model)

    def forward(self, ids: Ids) -> Stream:
        return super().forward(ids) * self.embedding_dim**0.5


def FeedForward(d_model: int, d_ff: int = 256, dropout: float = 0.1) -> feed_forward.FeedForward:
    """Two projections, a ReLU and dropout between them."""
    return feed_forward.FeedForward(d_model, d_ff, dropout=dropout)


class EncoderBlock(nn.Module):
    """A post-norm block of the encoder, called with the residual stream and a mask."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int = 256, dropout: float = 0.1) -> None:
        super().__init__()
        sizes = {"d_model": d_model, "n_heads": num_heads, "d_ff": d_ff, "dropout": dropout}
        self.block = build_block(presets.WEB_TUTORIAL_ENCODER.replace(**sizes))

    def forward(self, x: Stream, mask: DocumentMask | None = None) -> Stream:
        return self.block(x, StackContext(masks={0: _allowed(mask)}))


class NotebookTransformer(core.Transformer):
    """The same model, which also decodes as the notebook tutorial does."""

    def decode(self, target: Ids, memory: Tensor | None = None, *args: Any, **how: Any) -> Tensor:
        """The notebook's `decode(source, target)`, where both are token IDs: (b, s) again.

        As many as the source has, each the likeliest after the target and those before it. It
        takes nothing else: ValueError otherwise, and where the positions end before.
        """
        if memory is None or memory.is_floating_point():
            return super().decode(target, memory, *args, **how)
        if args or how:
            raise ValueError("decode(source, target) takes nothing else: see generate.")
        source, ids = target, memory
        for prompt in (source, ids):
            check_prompt(self, prompt)
        keep = keep_of(source, self.pad_id)
        with evaluating(self):
            encoded = self.encode(source, keep)
            for _ in range(source.shape[1]):
                logits = super().decode(ids, encoded, keep, read_at=slice(-1, None))
                ids = torch.cat((ids, logits.argmax(-1)), 1)
        return ids[:, memory.shape[1] :]


MultiHeadAttention = DocumentAttention
PositionalEncoding = DocumentPositions
Transformer = NotebookTransformer


class TransformerEncoder(core.Transformer):
    """The web tutorial's encoder, called with IDs and a mask: (b, t) -> (b, t, d_model)."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        max_len: int = 512,
        dropout: float = 0.1,
    ) -> None:
        config = presets.WEB_TUTORIAL_ENCODER.replace(
            vocab_size=vocab_size,
            d_model=d_model,
            n_heads=num_heads,
            n_layers=num_layers,
            d_ff=d_ff,
            max_len=max_len,
            dropout=dropout,
        )
        super().__init__(config)

    def forward(  # type: ignore[override]
        self,
        x: Ids,
        mask: DocumentMask | None = None,
        *,
        keep: SourceKeep | None = None,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
    ) -> Stream:
        x = self.last_stack(x, keep, mask=_allowed(mask), tap=tap.at("encoder"))
        return self.read(x, keep, read_at, tap)


def TransformerClassifier(
    vocab_size: int,
    d_model: int,
    num_heads: int,
    num_layers: int,
    d_ff: int,
    num_classes: int,
    dropout: float = 0.1,
) -> core.Transformer:
    """The web tutorial's classifier of the first token: (b, t) -> (b, num_classes)."""
    config = presets.WEB_TUTORIAL_CLASSIFIER.replace(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=num_heads,
        n_layers=num_layers,
        d_ff=d_ff,
        n_classes=num_classes,
        d_classifier=d_model // 2,
        dropout=dropout,
    )
    return core.Transformer(config)

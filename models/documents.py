"""The names that the handout and the web tutorial give the parts, with their arguments.

Each is the part of this core that it stands for, so their calls run as they are written;
where the two define one name, it takes the arguments of both.
`Transformer` itself takes the words of the notebook tutorial and of the repository README.
"""

import math

from jaxtyping import Bool, Float, Num
from torch import Tensor, nn

from models import attention, feed_forward, positional
from models.block import Block, StackContext
from models.presets import web_tutorial_classifier, web_tutorial_encoder
from models.shapes import Ids, Keys, Queries, Scores, Stream
from models.transformer import Transformer

__all__ = [
    "EncoderBlock",
    "FeedForward",
    "InputEmbedding",
    "MultiHeadAttention",
    "PositionalEncoding",
    "TransformerClassifier",
    "TransformerEncoder",
    "scaled_dot_product_attention",
]

DocumentMask = Bool[Tensor, "..."] | Num[Tensor, "..."]
"""0 or False where a query may not attend to a key; of any shape that broadcasts to the scores."""


def scaled_dot_product_attention(
    q: Queries, k: Keys, v: Keys, mask: DocumentMask | None = None
) -> tuple[Queries, Scores]:
    """Weighted sum of the values, and the weights. A query that may see nothing gets zeros."""
    return attention.scaled_dot_product_attention(q, k, v, _allowed(mask))


def _allowed(mask: DocumentMask | None) -> Bool[Tensor, "#b #h #q #k"] | None:
    """The same in booleans and four dimensions; the 0 of floats, which the core refuses, too."""
    if mask is None:
        return None
    return mask.bool().reshape((1,) * (4 - mask.dim()) + mask.shape)


class PositionalEncoding(positional.PositionalEncoding):
    """Sinusoids added to x, and dropout of the sum, of which the handout has none."""

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0) -> None:
        super().__init__(d_model, max_len)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Stream) -> Stream:
        return self.dropout(super().forward(x))


class MultiHeadAttention(attention.MultiHeadAttention):
    """Called with x alone (the handout), or with what queries, keys and values are made from."""

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
        return super().forward(ids) * math.sqrt(self.embedding_dim)


class FeedForward(feed_forward.FeedForward):
    """Two projections, a ReLU and dropout between them."""

    def __init__(self, d_model: int, d_ff: int = 256, dropout: float = 0.1) -> None:
        super().__init__(d_model, d_ff, dropout=dropout)


class EncoderBlock(Block):
    """A post-norm block of the encoder, called with the residual stream and a mask."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int = 256, dropout: float = 0.1) -> None:
        super().__init__(web_tutorial_encoder(1, d_model, num_heads, d_ff=d_ff, dropout=dropout))

    def forward(self, x: Stream, mask: DocumentMask | None = None) -> Stream:  # type: ignore[override]
        return super().forward(x, StackContext(masks={0: _allowed(mask)}))


def TransformerEncoder(
    vocab_size: int,
    d_model: int,
    num_heads: int,
    num_layers: int,
    d_ff: int,
    max_len: int = 512,
    dropout: float = 0.1,
) -> Transformer:
    """The web tutorial's encoder: (b, t) -> (b, t, d_model)."""
    sizes = vocab_size, d_model, num_heads, num_layers, d_ff, max_len, dropout
    return Transformer(web_tutorial_encoder(*sizes))


def TransformerClassifier(
    vocab_size: int,
    d_model: int,
    num_heads: int,
    num_layers: int,
    d_ff: int,
    num_classes: int,
    dropout: float = 0.1,
) -> Transformer:
    """The web tutorial's classifier of the first token: (b, t) -> (b, num_classes)."""
    sizes = vocab_size, d_model, num_heads, num_layers, d_ff, num_classes
    return Transformer(web_tutorial_classifier(*sizes).replace(dropout=dropout))

"""The special tokens and the three ways a model reads a text.

`$A` is the text. A decoder and a classifier meet one token before it, the source
of an encoder-decoder one after it; the decoder side of that model writes
`<s> … </s>`.
"""

PAD, BOS, EOS, UNKNOWN, CLS = "<pad>", "<s>", "</s>", "<unk>", "<cls>"

Reads = tuple[str, ...]

DECODER: Reads = (BOS, "$A")
SOURCE: Reads = ("$A", EOS)
CLASSIFIER: Reads = (CLS, "$A")

SPECIALS: dict[Reads, tuple[str, ...]] = {
    DECODER: (PAD, BOS),
    SOURCE: (PAD, BOS, EOS),
    CLASSIFIER: (PAD, CLS),
}
"""Which special tokens open the vocabulary; `<unk>` follows where a token can be unknown."""

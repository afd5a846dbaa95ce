"""The special tokens and the four ways a model reads a text.

`$A` is the text. A decoder and a classifier meet one token before it, the source
of an encoder-decoder one after it; the decoder side of that model writes
`<s> … </s>`. An encoder that answers at every position meets none.
"""

PAD, BOS, EOS, UNKNOWN, CLS = "<pad>", "<s>", "</s>", "<unk>", "<cls>"

Reads = tuple[str, ...]

DECODER: Reads = (BOS, "$A")
SOURCE: Reads = ("$A", EOS)
CLASSIFIER: Reads = (CLS, "$A")
ALONE: Reads = ("$A",)

SPECIALS: dict[Reads, tuple[str, ...]] = {
    DECODER: (PAD, BOS),
    SOURCE: (PAD, BOS, EOS),
    CLASSIFIER: (PAD, CLS),
    ALONE: (PAD,),
}
"""Which special tokens open the vocabulary; `<unk>` follows where a token can be unknown."""

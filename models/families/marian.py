"""Marian, the translation models of Opus-MT.

Sources: Marian: Fast Neural Machine Translation in C++ (Junczys-Dowmunt et al. 2018);
Attention Is All You Need, from which it differs in its activation and its sinusoids.
"""

from models.config import TransformerConfig
from models.families.bart import family, two_stacks
from models.families.published import Published


def marian_config(published: Published) -> TransformerConfig:
    base = two_stacks(published, static=True, vocab_size=58101)
    base = base.replace(**published.tokens(pad=58100, eos=0, start=58100, pad_may_begin=True))
    if published.flag("share_encoder_decoder_embeddings", True):
        return base
    vocab_size = published.optional_int("decoder_vocab_size") or base.vocab_size
    return base.replace(
        vocab_size=vocab_size, src_vocab_size=base.vocab_size, share_embeddings=False
    )


MARIAN = family(("marian",), marian_config)

"""Pegasus, which writes summaries. Source: PEGASUS (Zhang et al. 2019), section 6."""

from models.config import TransformerConfig
from models.families.bart import family, two_stacks
from models.families.published import Published


def pegasus_config(read: Published) -> TransformerConfig:
    base = two_stacks(read, pre=True, static=True, vocab_size=50265)
    return base.replace(**read.tokens(pad=0, eos=1, start=0, pad_may_begin=True))


PEGASUS = family(("pegasus",), pegasus_config)

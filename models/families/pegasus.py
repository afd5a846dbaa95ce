"""Pegasus, a summarizer. Source: PEGASUS (Zhang et al. 2019), section 6."""

from models.config import TransformerConfig
from models.families.bart import family, two_stacks
from models.families.published import Published


def pegasus_config(published: Published) -> TransformerConfig:
    base = two_stacks(published, pre=True, static=True, vocab_size=50265)
    return base.replace(**published.tokens(pad=0, eos=1, start=0, pad_may_begin=True))


PEGASUS = family(("pegasus",), pegasus_config)

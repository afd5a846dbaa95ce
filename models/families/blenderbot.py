"""Blenderbot, a chatbot. Source: Recipes for Building an Open-Domain Chatbot (Roller 2020)."""

from models.config import TransformerConfig
from models.families.bart import family, two_stacks
from models.families.published import Published

BLENDERBOT_DEFAULTS = {
    "d_model": 2560,
    "encoder_layers": 2,
    "decoder_layers": 24,
    "encoder_attention_heads": 32,
    "decoder_attention_heads": 32,
    "encoder_ffn_dim": 10240,
    "decoder_ffn_dim": 10240,
    "max_position_embeddings": 128,
}


def blenderbot_config(published: Published) -> TransformerConfig:
    base = two_stacks(published.over(BLENDERBOT_DEFAULTS), pre=True, vocab_size=8008)
    return base.replace(**published.tokens(pad=0, bos=1, eos=2, start=1))


BLENDERBOT = family(("blenderbot",), blenderbot_config)

"""A Transformer from scratch: one small core for encoders, decoders and both together."""

from models.config import TransformerConfig
from models.loading.checkpoint import load_checkpoint, save_checkpoint
from models.trace import trace
from models.transformer import Transformer

__all__ = ["Transformer", "TransformerConfig", "load_checkpoint", "save_checkpoint", "trace"]

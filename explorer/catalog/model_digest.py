"""What a model computes with, as a digest: its config and every weight."""

import hashlib

from explorer.system.cooperative import interruptible
from models import Transformer


def model_digest(model: Transformer) -> str:
    """64 hex digits; models of equal config and weights have the same. Reads all weights once."""
    digest = hashlib.sha256(repr(model.config).encode())
    for name, weight in interruptible(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.detach().contiguous().numpy().data)
    return digest.hexdigest()

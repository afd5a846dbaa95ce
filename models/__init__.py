"""A Transformer from scratch: one small core for encoders, decoders and both together.

To be read in this order:

1. `plain`, `config`, `rope_scaling`: a model as plain frozen data, and why a combination is none
2. `tap`: how every module shows its values to whoever watches or edits a forward pass
3. `shapes`, `masking`: the tensors between modules; which key a query may attend to
4. `positional`: where a token stands, in six schemes
5. `normalization`, `feed_forward`: the layers that treat every position alike
6. `cache`: keys and values of earlier tokens
7. `attention`: scaled dot-product and multi-head attention
8. `block`: attention and feed-forward around the residual stream
9. `heads`: logits of tokens or of classes
10. `initialization`, `transformer`: the whole model
11. `presets`: the configs of the paper and of the documents
12. `interventions`, `trace`: a forward pass recorded and edited
13. `sampling`, `generation`, `beam_search`: from logits to text
14. `losses`, `training`: from text to weights

Around the core: `families` maps published configs and weight names to ours, `loading` reads
and writes checkpoints, `checkpoints` holds those that come with the app.
"""

from models.config import GenerationConfig, TransformerConfig
from models.loading.checkpoint import load_checkpoint, save_checkpoint
from models.trace import trace
from models.transformer import Transformer

__all__ = [
    "GenerationConfig",
    "Transformer",
    "TransformerConfig",
    "load_checkpoint",
    "save_checkpoint",
    "trace",
]

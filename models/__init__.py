"""A Transformer from scratch: one small core for encoders, decoders and both together.

To be read in this order, in which no module needs a later one:

1. `plain`, `rope_scaling`, `config`: a model as plain frozen data, and why a combination is none
2. `presets`: the configs of the paper and of the documents
3. `shapes`: the tensors that pass between modules
4. `tap`: how every module shows its values to whoever records or edits a forward pass
5. `masking`: which key a query may attend to
6. `positional`: where a token stands, in six schemes
7. `normalization`, `feed_forward`: the layers that treat every position alike
8. `cache`: keys and values of earlier tokens
9. `attention`: scaled dot-product and multi-head attention
10. `block`: attention and feed-forward around the residual stream
11. `output_heads`: logits of tokens or of classes
12. `initialization`, `transformer`: the whole model
13. `interventions`, `trace`, `gradients`, `frozen`: a forward pass recorded, edited,
   differentiated and made linear
14. `sampling`, `generation`, `beam_search`: from logits to text
15. `losses`, `optimizers`, `together`, `training`: from text to weights, also in several processes
16. `lora`: two thin matrices beside a frozen one, to train a model further
17. `documents`: the parts by the names that the documents give them

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

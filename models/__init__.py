"""A Transformer from scratch: one small core for encoders, decoders and both together.

To be read in this order, in which no module needs a later one:

1. `minimal`: the decoder in one file of 200 lines, which needs none of the others
2. `plain`, `rope_scaling`, `config`: a model as plain frozen data, and why a combination is none
3. `presets`: the configs of the paper and of the documents
4. `shapes`: the tensors that pass between modules
5. `tap`: how every module shows its values to whoever records or edits a forward pass
6. `masking`: which key a query may attend to
7. `positional`: where a token stands, in six schemes
8. `normalization`, `feed_forward`: the layers that treat every position alike
9. `cache`: keys and values of earlier tokens
10. `attention`: scaled dot-product and multi-head attention
11. `block`: attention and feed-forward around the residual stream
12. `output_heads`: logits of tokens or of classes
13. `initialization`, `transformer`: the whole model
14. `interventions`, `trace`, `gradients`: a forward pass recorded, edited and differentiated
15. `sampling`, `generation`, `beam_search`: from logits to text
16. `losses`, `optimizers`, `together`, `training`: from text to weights, also in several processes
17. `lora`: two thin matrices beside a frozen one, to train a model further
18. `documents`: the parts by the names that the documents give them

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

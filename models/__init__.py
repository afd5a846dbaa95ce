"""A Transformer from scratch: one small core for encoders, decoders and both together.

To be read in this order, in which no module needs a later one. The model:

1. `shapes`: the tensors that pass between modules
2. `tap`: how every module shows its values to whoever records or edits a forward pass
3. `masking`: which key a query may attend to
4. `attention`: scaled dot-product and multi-head attention
5. `positional`: where a token stands
6. `normalization`, `feed_forward`: the layers that treat every position alike
7. `block`: attention and feed-forward around the residual stream
8. `stack`, `encoder`, `decoder`: blocks one above another
9. `output_heads`: logits of tokens or classes
10. `transformer`: the whole model
11. `interventions`, `head_inputs`, `trace`, `gradients`: a pass recorded, edited, differentiated
12. `minimal`: the decoder once more, in one file of 200 lines that needs none of the others

The small print:

13. `file_text`, `config_fields`, `rotary`, `position_biases`, `row_scales`, `config`, `presets`:
    leaves, and a model as data
14. `cache`, `sampling`, `generation`, `beam_search`: from logits to text
15. `model`: a model from its config, with new weights
16. `frozen_scales`: modules as linear maps, their scales frozen at their values in one pass
17. `losses`, `optimizers`, `schedules`, `distributed`, `training`: from text to weights
18. `lora`: two thin matrices beside a frozen one, to train a model further

Around the core: `families` maps the configs and names of published models and of the documents
to ours, `loading` reads and writes checkpoints, `checkpoints` holds those that come with the app.
"""

from models.config import GenerationConfig, TransformerConfig
from models.loading.checkpoint import load_checkpoint, save_checkpoint
from models.model import Transformer
from models.trace import trace

__all__ = [
    "GenerationConfig",
    "Transformer",
    "TransformerConfig",
    "load_checkpoint",
    "save_checkpoint",
    "trace",
]

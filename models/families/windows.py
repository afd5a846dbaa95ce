"""Which layers of a published model attend to a window of the text only."""

from models.config import MOST_LAYERS
from models.families.published import Published

SLIDING, FULL = "sliding_attention", "full_attention"


def layer_windows(published: Published, *, first: int = 0, every: int = 1) -> tuple[int, ...]:
    """The window of every layer, 0 for all of the text; () when no layer has one.

    `layer_types` names them; without it, every such layer from `first` on has the window.
    """
    width = published.optional_int("sliding_window")
    types = published.values.get("layer_types")
    n_layers = published.int("num_hidden_layers", 32)
    if types is None:
        layers = range(min(n_layers, MOST_LAYERS))
        types = [SLIDING if i >= first and i % every == 0 else FULL for i in layers]
    elif not isinstance(types, list) or any(kind not in (SLIDING, FULL) for kind in types):
        raise ValueError(f"layer_types must be a list of {SLIDING} and {FULL}.")
    elif len(types) != n_layers:
        raise ValueError(f"layer_types names {len(types):,} layers, but there are {n_layers:,}.")
    if width is None and SLIDING in (published.values.get("layer_types") or ()):
        raise ValueError(f"layer_types names a {SLIDING}, but there is no sliding_window.")
    if width is None or SLIDING not in types:
        return ()
    if width < 1:
        raise ValueError(f"sliding_window {width} leaves no key to attend to.")
    return tuple(width if kind == SLIDING else 0 for kind in types)

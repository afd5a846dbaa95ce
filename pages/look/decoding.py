"""How a model's next token is chosen: stage by stage, by beams, and fed the right answer."""

from explorer import session, widgets
from explorer.bench import beams, choosing_next, forcing, growing
from explorer.choices import one_of
from models.beam_search import beam_search
from models.generation import choose_from, keep_top_k, keep_top_p

WAYS = {
    "Token by token": choosing_next.show,
    "Beam search": beams.show,
    "Teacher forcing": forcing.show,
}

widgets.opening(
    "Decoding",
    "From the model's logits to one token: what temperature, top-k and top-p leave of them, "
    "and what is written when one token is chosen after another.",
)
growing.must_write(session.opened())
lines = WAYS[one_of("What to see", "way", list(WAYS))]()
widgets.code(choose_from, keep_top_k, keep_top_p, beam_search, pasted=lines)

"""How a model's next token is chosen: stage by stage, by beams, and fed the right answer."""

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.decoding import beams, forced_and_free, token_by_token
from explorer.views.shared import growing_text, widgets
from models.beam_search import beam_search
from models.sampling import choose_from, keep_top_k, keep_top_p

WAYS = {
    "Token by token": token_by_token.show,
    "Beam search": beams.show,
    "Teacher forcing": forced_and_free.show,
}

widgets.opening(
    "Decoding",
    "From the model's logits to one token: what temperature, top-k and top-p leave of them, "
    "and what is written when one token is chosen after another.",
)
growing_text.must_write(page_context().opened)
lines = WAYS[one_of("What to see", "way", list(WAYS))]()
widgets.code(choose_from, keep_top_k, keep_top_p, beam_search, pasted=lines)

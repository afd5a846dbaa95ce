"""How a model's next token is chosen: stage by stage, by beam search, and with teacher forcing."""

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.decoding.beam_search_view import draw_beam_search
from explorer.views.decoding.teacher_forcing_view import draw_teacher_forcing
from explorer.views.decoding.token_by_token import draw_token_by_token
from explorer.views.shared import export_panel, growing_text, widgets
from models.beam_search import beam_search
from models.sampling import choose_from, keep_top_k, keep_top_p

WAYS = {
    "Token by token": draw_token_by_token,
    "Beam search": draw_beam_search,
    "Teacher forcing": draw_teacher_forcing,
}

context = page_context()
widgets.opening(
    "Decoding",
    "From logits to the next token: sampling with temperature, top-k and top-p, beam search, and "
    "teacher forcing.",
)
growing_text.require_generation(context.opened)
lines = WAYS[one_of("View", "way", list(WAYS))](context)
export_panel.export_button(export_panel.origin(context))
widgets.code_panel(choose_from, keep_top_k, keep_top_p, beam_search, script=lines)

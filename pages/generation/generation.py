"""A text that grows token by token: how each is chosen, beam search, and teacher forcing."""

from explorer.app.context import PageContext, page_context
from explorer.app.controls import one_of
from explorer.app.throttle import turn
from explorer.components.fragment import fragment
from explorer.views.generation.beam_search_view import draw_beam_search
from explorer.views.generation.chat_panel import draw_chat_panel
from explorer.views.generation.generation_limits import require_generation
from explorer.views.generation.teacher_forcing_view import draw_teacher_forcing
from explorer.views.generation.token_by_token import draw_token_by_token
from explorer.views.shared import widgets
from models.beam_search import beam_search
from models.generation import generate
from models.sampling import choose_from, keep_top_k, keep_top_p

WAYS = {
    "Token by token": draw_token_by_token,
    "Beam search": draw_beam_search,
    "Teacher forcing": draw_teacher_forcing,
}

widgets.opening(
    "Generation",
    "The model continues your sentence: from the logits to the next token, again and again.",
)


@fragment()
@turn()
def draw_generation(context: PageContext) -> None:
    """What one token more draws again."""
    way = one_of("way", list(WAYS), label_visibility="collapsed")
    lines = WAYS[way](context)
    widgets.closing(
        context, choose_from, keep_top_k, keep_top_p, generate, beam_search, script=lines
    )


context = page_context()
require_generation(context.opened)
draw_chat_panel(context)
draw_generation(context)

"""A sentence that the model continues token by token, and the map of the chosen head with it."""

from explorer.app.context import page_context
from explorer.snippets import forward_pass_code
from explorer.views.shared import export_panel, growing_text, widgets
from models.generation import generate
from models.sampling import choose_from

context = page_context()
widgets.opening(
    "Generate",
    "The model continues your sentence with the likeliest token, again and again; the map of the "
    "chosen head grows with it.",
)
generated = growing_text.generate_from(context)
growing_text.draw_generated_text(context, generated)
widgets.notes(generated.forward.notes)
export_panel.export_button(export_panel.origin(context))
widgets.code_panel(
    generate,
    choose_from,
    script=lambda: forward_pass_code.writing(
        generated.forward, generated.prompt_length, generated.steps, context.folder
    ),
)

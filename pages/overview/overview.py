"""The first page: the whole forward pass in one picture, and the way to every other page."""

from explorer.app.context import page_context
from explorer.components.pass_map import lens_rows, pass_map
from explorer.inference.answers import first_place
from explorer.inference.output_tokens import last_stack_tokens
from explorer.views.overview import pass_picture
from explorer.views.shared import export_panel, widgets

context = page_context()
widgets.opening(
    "Overview",
    "The whole forward pass: tokens below, layers upwards, the answer on top.",
)
forward, opened = context.forward, context.opened
picture = pass_picture.picture_of(opened, forward)
asked = first_place(opened, last_stack_tokens(forward))
asked = asked if len(picture.flow.starts) > 1 else 0
pass_map(
    picture,
    key="map",
    title="The forward pass",
    asked=asked,
    choice=[asked, -1, -1, 0.005, -1, -1],
    height=560,
    on_chosen=lambda value: None,
    on_go=lambda value: None,
    figures=lambda: (),
)
widgets.notes(forward.notes)
export_panel.export_button(export_panel.origin(context))
if picture.has_lens:
    pass_picture.hand_over_lens(
        opened, forward, lambda first, rows: lens_rows("map", first, rows, picture.of)
    )

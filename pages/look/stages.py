"""One head step by step: scores, scaled, masked, softmax, times values; equation and numbers."""

from explorer import session, widgets
from explorer.bench import stages
from explorer.snippets import positions
from models.attention import attention_scores, attention_weights, scaled_dot_product_attention

widgets.opening(
    "Head, step by step",
    "The equation of attention with the chosen head's own numbers: every stage as a matrix, and "
    "one cell held in all of them.",
)
reading = session.reading_of_text()
stages.show(reading)
widgets.notes(reading.notes)
at, folder = session.choice(), session.folder()
widgets.code(
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
    pasted=lambda: positions.stages(reading, folder, (at.part, at.layer, at.head)),
)

"""How a model is told where a token stands: six schemes, another order, a text too long."""

from explorer.analysis.position_schemes import CODE
from explorer.views.positions import chooser
from explorer.views.shared import widgets

widgets.opening(
    "Positions",
    "Attention alone does not see the order of the words; this is what tells the model "
    "where each token stands.",
)
scheme, lines = chooser.draw_positions()
widgets.code(CODE[scheme], pasted=lines)

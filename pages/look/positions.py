"""How a model is told where a token stands: six schemes, another order, a text too long."""

from explorer import widgets
from explorer.bench import positions
from explorer.positions import CODE

widgets.opening(
    "Positions",
    "Attention alone does not see the order of the words; this is what tells the model "
    "where each token stands.",
)
scheme, lines = positions.show()
widgets.code(CODE[scheme], pasted=lines)

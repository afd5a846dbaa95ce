"""The tutorials' mistakes as exhibits, a hunt for one, and the systems they come from."""

from explorer import widgets
from explorer.bench import museum, museum_finding, museum_systems
from explorer.choices import one_of
from models.mistakes import attention, outputs, positions, stacks

ROOMS = {
    "Exhibits": museum.show,
    "Find it": museum_finding.show,
    "The systems": museum_systems.show,
}

widgets.opening(
    "Museum",
    "Fourteen mistakes of four teaching texts on the Transformer: a lecture handout, a notebook "
    "tutorial, a web tutorial and a repository's README. A model that really runs makes each: what "
    "it breaks, and what gives it away.",
)
pasted = ROOMS[one_of("Room", "room", tuple(ROOMS))]()
widgets.code(
    positions.doubled_sinusoids,
    outputs.SoftmaxBatch,
    stacks.LosesTarget,
    stacks.NeverAppends,
    attention.OneForAllHeads,
    attention.filled_weights,
    pasted=pasted,
    label="The code of the mistakes",
)

"""What the passes of a question cost, in multiplications, and the sentence where it is too much."""

from explorer.analysis.circuits.text_pairs import Question
from explorer.catalog.opened_model import Opened

TOO_LONG_FOR_PAIRS = (
    "So many passes of this model take too long: take fewer pairs, or shorten the texts."
)


def cost_of_passes(opened: Opened, question: Question) -> int:
    """Multiplications of one plain pass of every pair."""
    return sum(len(pair.clean) for pair in question.pairs) * _per_token(opened)


def cost_of_branches(opened: Opened, question: Question) -> int:
    """The same of one that branches off in the middle, and where the texts differ first."""
    differing = sum(len(pair.clean) - pair.differing[0] for pair in question.pairs)
    is_causal = opened.config.kind == "decoder"
    if not is_causal:
        return cost_of_passes(opened, question) // 2
    return differing * _per_token(opened) // 2


def _per_token(opened: Opened) -> int:
    blocks = opened.model.last_stack.blocks.parameters()
    return sum(each.numel() for each in blocks)
